#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace cb::sim {

/// Which lines a cache holds: direct-mapped tags, enough to tell reuse from streaming.
class LineCache {
 public:
  /// Whether the line is there; it is afterwards. `capacity` in lines, fixed by the first call.
  bool touch(uint64_t line, uint64_t capacity) {
    if (tags_.empty()) [[unlikely]]
      tags_.resize(std::bit_ceil(capacity));
    // Lines of buffers that lie a power of two apart must not all meet in one place.
    uint64_t place = (line ^ line >> 13 ^ line >> 29) & (tags_.size() - 1);
    uint64_t tag = line << kGenerationBits | generation_;
    if (tags_[place] == tag) return true;
    tags_[place] = tag;
    return false;
  }

  void forget() {
    if (tags_.empty()) return;
    generation_ = (generation_ + 1) & ((1u << kGenerationBits) - 1);
    if (generation_ == 0) {
      // Tags of the same number from long ago must not look fresh.
      tags_.assign(tags_.size(), 0);
      generation_ = 1;
    }
  }

 private:
  static constexpr unsigned kGenerationBits = 20;
  std::vector<uint64_t> tags_;
  uint32_t generation_ = 1;
};

}  // namespace cb::sim
