#pragma once

// Which matrix instruction an mma or wmma.mma is, as far as its handlers need
// to know.

#include "simulator/exec/matrix_fragments.h"

namespace cb::sim {

enum class Accumulator : uint8_t { kF32, kF16, kS32, kF64 };

/// Carried in MicroOp::immediate.
struct MmaForm {
  MatrixType a = MatrixType::kF16;
  MatrixType b = MatrixType::kF16;
  Accumulator c = Accumulator::kF32;
  Accumulator d = Accumulator::kF32;
  uint8_t row_blocks = 2;  ///< of eight rows
  uint8_t lines = 2;       ///< of a row of A, 16 bytes each (.f64: 4 elements), as it
                           ///< is in registers
  uint8_t rounding = 0;    ///< .f64: a Rounding
  uint8_t flags = 0;

  static constexpr uint8_t kSaturates = 1;
  static constexpr uint8_t kXor = 2;        ///< .b1: else and
  static constexpr uint8_t kSparse = 4;     ///< lines of B are twice those of A
  static constexpr uint8_t kSelector = 24;  ///< mask, from bit 3: the sparsity selector
  static constexpr unsigned kSelectorShift = 3;

  static MmaForm of(const MicroOp* op) { return std::bit_cast<MmaForm>(op->immediate); }
  uint64_t immediate() const { return std::bit_cast<uint64_t>(*this); }

  unsigned selector() const { return (flags & kSelector) >> kSelectorShift; }
  bool has(uint8_t flag) const { return (flags & flag) != 0; }
  unsigned b_lines() const { return has(kSparse) ? 2u * lines : lines; }
  unsigned k() const { return b_lines() * (a == MatrixType::kF64 ? 4 : elements_per_line(a)); }
  unsigned num_a() const { return row_blocks * lines; }
  unsigned num_b() const { return b_lines(); }
  static unsigned registers_of(Accumulator accumulator, unsigned row_blocks) {
    return accumulator == Accumulator::kF16 ? row_blocks : 2 * row_blocks;
  }
  unsigned num_c() const { return registers_of(c, row_blocks); }
  unsigned num_d() const { return registers_of(d, row_blocks); }
  Resources::TensorWork work() const {
    return {.macs = uint64_t{8} * row_blocks * 8 * k() / (has(kSparse) ? 2 : 1),
            .bits = std::max(bits_of(a), is_integer(a) ? 8u : 1u)};
  }
};
static_assert(sizeof(MmaForm) == sizeof(uint64_t));

/// Registers of the operands of one product.
struct MmaOperands {
  const Slot* a = nullptr;
  const Slot* b = nullptr;
  const Slot* c = nullptr;
  const Slot* metadata = nullptr;  ///< of a sparse A
};

/// D, before it is in registers: they may be those of an operand.
struct MmaResult {
  alignas(64) std::byte lanes[4][kLanes * sizeof(double)];

  uint32_t* words(unsigned index) { return reinterpret_cast<uint32_t*>(lanes[index]); }
  double* doubles(unsigned index) { return reinterpret_cast<double*>(lanes[index]); }
};

/// A * B + C for 8 or 16 rows and eight columns.
void multiply_add(Context& c, const MmaOperands& operands, const MmaForm& form, MmaResult& result);
void store_result(Context& c, const MmaForm& form, const Slot* d, const MmaResult& result);

/// Take the next modifier if it is of that kind.
std::optional<Accumulator> take_accumulator(OpQuery& query);
std::optional<MatrixType> take_matrix_type(OpQuery& query);

/// m8n8k4 on .f16: one product for each of four groups of eight lanes. See
/// mma_quad_ops.cc.
std::optional<Result<OpSpec>> find_quad_mma(OpQuery& query);

}  // namespace cb::sim
