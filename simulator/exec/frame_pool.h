#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

namespace cb::sim {

/// Memory for frames: many of a few sizes, which come and go with blocks. Taken from huge pages, as
/// touching a small page for the first time costs more than a warp's start.
class FramePool {
 public:
  struct Deleter {
    FramePool* pool = nullptr;
    size_t bytes = 0;
    void operator()(std::byte* memory) const { pool->give(memory, bytes); }
  };
  using Memory = std::unique_ptr<std::byte[], Deleter>;

  FramePool() = default;
  ~FramePool();
  FramePool(const FramePool&) = delete;
  FramePool& operator=(const FramePool&) = delete;

  /// Aligned to 64 bytes; content undefined.
  Memory take(size_t bytes);

 private:
  void give(std::byte* memory, size_t bytes);

  std::map<size_t, std::vector<std::byte*>> free_;
  std::vector<std::pair<std::byte*, size_t>> slabs_;
  std::byte* next_ = nullptr;
  size_t left_ = 0;
};

}  // namespace cb::sim
