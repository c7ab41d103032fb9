#include <sys/mman.h>

#include <algorithm>

#include "base/check.h"
#include "simulator/memory/address_space.h"

namespace cb::sim {
namespace {

constexpr uint64_t kAlign = 512;
constexpr uint64_t kPage = 4096;
/// At least a page, so that no two blocks share one.
constexpr uint64_t kGuard = kPage;
/// Free blocks keep their pages up to this much together.
constexpr uint64_t kMaxKeptBytes = uint64_t{256} << 20;

uint64_t rounded(uint64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

}  // namespace

uint64_t ScratchSpace::allocate(uint64_t bytes) {
  if (bytes > quota_bytes_ || in_use_ + rounded(bytes) > quota_bytes_) return 0;
  uint64_t size = rounded(bytes);
  auto found = free_.find(size);
  if (found != free_.end() && !found->second.empty()) {
    uint64_t base = found->second.back();
    found->second.pop_back();
    in_use_ += size;
    kept_ -= std::min(kept_, size);
    return base;
  }
  if (kScratchBase + kArenaBytes - next_ < size + kGuard) return 0;
  uint64_t base = next_;
  next_ += size + kGuard;
  in_use_ += size;
  return base;
}

void ScratchSpace::release(uint64_t base, uint64_t bytes) {
  uint64_t size = rounded(bytes);
  CB_CHECK(base >= kScratchBase && base + size <= next_ && size <= in_use_, "not from here");
  free_[size].push_back(base);
  in_use_ -= size;
  if (kept_ + size <= kMaxKeptBytes) {
    kept_ += size;
    return;
  }
  uint64_t first = base / kPage * kPage;
  uint64_t last = (base + size + kPage - 1) / kPage * kPage;
  if (last > first) madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace cb::sim
