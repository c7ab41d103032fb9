#include "simulator/exec/frame_pool.h"

#include <sys/mman.h>

#include <algorithm>

#include "base/error.h"

namespace cb::sim {
namespace {

constexpr size_t kAlign = 64;
constexpr size_t kSlabBytes = size_t{8} << 20;
constexpr size_t kHugePage = size_t{2} << 20;

}  // namespace

FramePool::~FramePool() {
  for (auto [slab, bytes] : slabs_) munmap(slab, bytes);
}

FramePool::Memory FramePool::take(size_t bytes) {
  bytes = (bytes + kAlign - 1) / kAlign * kAlign;
  auto found = free_.find(bytes);
  if (found != free_.end() && !found->second.empty()) {
    std::byte* memory = found->second.back();
    found->second.pop_back();
    return Memory(memory, {this, bytes});
  }
  if (left_ < bytes) {
    size_t size = (std::max(bytes, kSlabBytes) + kHugePage - 1) / kHugePage * kHugePage;
    void* slab = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (slab == MAP_FAILED) throw system_error("map memory for registers");
    madvise(slab, size, MADV_HUGEPAGE);
    slabs_.emplace_back(static_cast<std::byte*>(slab), size);
    next_ = static_cast<std::byte*>(slab);
    left_ = size;
  }
  std::byte* memory = next_;
  next_ += bytes;
  left_ -= bytes;
  return Memory(memory, {this, bytes});
}

void FramePool::give(std::byte* memory, size_t bytes) { free_[bytes].push_back(memory); }

}  // namespace cb::sim
