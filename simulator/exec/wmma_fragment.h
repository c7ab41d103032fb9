#pragma once

// Fragments of wmma. PTX leaves open which element is where; here the fragment of a matrix is that
// of the mma instructions which make up the product: A in blocks of 16 rows (8, where M is 8), B
// and the accumulators in blocks of eight columns. It does not depend on the layout in memory.
// Fragments of .f16 have eight registers in all shapes, and repeat what fewer would hold.

#include "simulator/exec/mma_form.h"

namespace cb::sim {

struct WmmaShape {
  std::string_view name;
  uint8_t m_blocks;  ///< of eight rows
  uint8_t n_blocks;
  uint8_t k;
};

/// Takes a shape of wmma; nullptr when there is none.
const WmmaShape* take_wmma_shape(OpQuery& query);

/// Lines of A and B for a type; 0 where the shape does not go with it.
unsigned wmma_lines(MatrixType type, const WmmaShape& shape);
/// Whether accumulators of this type go with the shape.
bool wmma_accumulates(Accumulator accumulator, const WmmaShape& shape);

/// Register `index` of A that holds block `block`, line `line`.
constexpr unsigned wmma_register_of_a(unsigned block, unsigned line, unsigned blocks,
                                      unsigned lines) {
  return blocks == 1 ? line : block / 2 * 2 * lines + 2 * line + block % 2;
}
constexpr unsigned wmma_register_of_b(unsigned block, unsigned line, unsigned lines) {
  return block * lines + line;
}
/// The first register of an accumulator's block of eight rows and columns, in units of such blocks.
constexpr unsigned wmma_accumulator_block(unsigned row_block, unsigned column_block,
                                          unsigned row_blocks, unsigned column_blocks) {
  if (row_blocks == 1) return column_block;
  return (row_block / 2 * column_blocks + column_block) * 2 + row_block % 2;
}
/// Registers of A or B: `blocks` blocks of `lines` lines.
constexpr unsigned wmma_operand_registers(MatrixType type, unsigned blocks, unsigned lines) {
  return type == MatrixType::kF16 ? 8 : blocks * lines;
}

std::span<const OpEntry> wmma_move_entries();

}  // namespace cb::sim
