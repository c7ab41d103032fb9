#include "simulator/memory/address_space.h"

namespace cb::sim {
namespace {

constexpr uint64_t kAlign = 512;
constexpr uint64_t kGuard = 4096;

uint64_t rounded(uint64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

}  // namespace

uint64_t ScratchSpace::allocate(uint64_t bytes) {
  uint64_t size = rounded(bytes);
  auto found = free_.find(size);
  if (found != free_.end() && !found->second.empty()) {
    uint64_t base = found->second.back();
    found->second.pop_back();
    in_use_ += size;
    return base;
  }
  if (bytes > kArenaBytes || kScratchBase + kArenaBytes - next_ < size + kGuard) return 0;
  uint64_t base = next_;
  next_ += size + kGuard;
  in_use_ += size;
  return base;
}

void ScratchSpace::release(uint64_t base, uint64_t bytes) {
  uint64_t size = rounded(bytes);
  free_[size].push_back(base);
  in_use_ -= size;
}

}  // namespace cb::sim
