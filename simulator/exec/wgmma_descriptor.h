#pragma once

// Where the elements of a matrix in shared memory lie, as a wgmma descriptor
// says (PTX ISA, "matrix descriptor format" and "shared memory matrix layout").
// The unit is a line of 16 bytes.
//
// A matrix is made of bricks of eight lines by the width W of the swizzle (16
// bytes without one). Where the lines run along K, line `row` of eight is W
// bytes after the one before; where they run along M or N, the eight lines are
// those of eight values of k. The two byte offsets lead from brick to brick.
// Swizzling exchanges the lines of each 1024 (512, 256) bytes of shared memory:
// bits 4 and up of an address are xored with bits 7 and up, counted from where
// the descriptor's base offset says that the pattern starts.

#include <cstdint>

namespace cb::sim {

class MatrixDescriptor {
 public:
  explicit MatrixDescriptor(uint64_t bits)
      : start_(field(bits, 0)),
        leading_(field(bits, 16)),
        stride_(field(bits, 32)),
        base_offset_(static_cast<uint32_t>(bits >> 49) & 7) {
    constexpr uint32_t kWidths[] = {16, 128, 64, 32};
    width_ = kWidths[bits >> 62];
  }

  /// Offset in shared memory of 16-byte line `chunk` of row (of A; column of B)
  /// `row`.
  uint32_t line_along_k(uint32_t row, uint32_t chunk) const {
    uint32_t at = chunk * 16;
    return placed(start_ + row % 8 * width_ + row / 8 * stride_ + at % width_ +
                  at / width_ * leading_);
  }
  /// Of the eight 16-bit elements from row (column) 8 * `block` on that have
  /// this k.
  uint32_t line_across(uint32_t block, uint32_t k) const {
    if (width_ == 16) return placed(start_ + block * stride_ + k % 8 * 16 + k / 8 * leading_);
    uint32_t of_width = width_ / 16;
    return placed(start_ + block % of_width * 16 + block / of_width * leading_ + k % 8 * width_ +
                  k / 8 * stride_);
  }

 private:
  /// Offsets are 18 bits, the lowest four of which are zero.
  static constexpr uint32_t kMask = 0x3fff0;

  static uint32_t field(uint64_t bits, unsigned shift) {
    return static_cast<uint32_t>(bits >> shift & 0x3fff) << 4;
  }
  uint32_t placed(uint32_t address) const {
    uint32_t lines = (address >> 7) - base_offset_;
    return (address ^ (lines & (width_ / 16 - 1)) << 4) & kMask;
  }

  uint32_t start_, leading_, stride_, base_offset_;
  uint32_t width_ = 16;
};

}  // namespace cb::sim
