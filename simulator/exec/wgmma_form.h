#pragma once

// Which product a wgmma.mma_async is, and its handlers.

#include "simulator/exec/matrix_fragments.h"

namespace cb::sim {

/// The type of D.
enum class Sum : uint8_t { kF32, kF16, kS32 };

/// Carried in MicroOp::immediate.
struct WgmmaForm {
  MatrixType a = MatrixType::kF16;
  MatrixType b = MatrixType::kF16;
  Sum d = Sum::kF32;
  uint8_t blocks = 1;  ///< of eight columns
  uint8_t flags = 0;
  uint8_t selector = 0;
  uint16_t unused = 0;

  static constexpr uint8_t kNegates = 1;  ///< the product of the two scales is -1
  static constexpr uint8_t kAcrossA = 2;  ///< lines of A run along M
  static constexpr uint8_t kAcrossB = 4;
  static constexpr uint8_t kSaturates = 8;
  static constexpr uint8_t kSparse = 16;
  static constexpr uint8_t kFragmentA = 32;  ///< A is in registers

  static WgmmaForm of(const MicroOp* op) { return std::bit_cast<WgmmaForm>(op->immediate); }
  uint64_t immediate() const { return std::bit_cast<uint64_t>(*this); }
  bool has(uint8_t flag) const { return (flags & flag) != 0; }
  unsigned lines_b() const { return has(kSparse) ? 4 : 2; }
  unsigned k() const { return lines_b() * elements_per_line(b); }
  unsigned num_d() const { return blocks * (d == Sum::kF16 ? 2u : 4u); }
};
static_assert(sizeof(WgmmaForm) == sizeof(uint64_t));

inline constexpr unsigned kWgmmaLinesOfA = 2;  ///< of a row, as it is in memory or registers

const MicroOp* wgmma_op(Context& c, const MicroOp* op);
const MicroOp* wgmma_fence_op(Context& c, const MicroOp* op);
const MicroOp* wgmma_commit_op(Context& c, const MicroOp* op);
const MicroOp* wgmma_wait_op(Context& c, const MicroOp* op);

}  // namespace cb::sim
