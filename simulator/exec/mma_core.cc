// D = A * B + C of one warp, all four in registers. Rows 8i to 8i + 7 of a
// piece of A are one register, so are eight columns of a piece of B, and of an
// accumulator's rows two registers hold the even and the odd columns
// (matrix_tile.h). Registers of A and of accumulators alternate between the
// upper and the lower eight rows.

#include <cmath>

#include "simulator/exec/directed.h"
#include "simulator/exec/matrix_sparse.h"
#include "simulator/exec/mma_form.h"

namespace cb::sim {
namespace {

constexpr unsigned kMostRows = 16;
constexpr unsigned kMostLines = 4;

struct Tile {
  float a[kMostRows][kMostK];
  float b[kMostK * 8];
};

void widen_a(Context& c, const Slot* slots, const MmaForm& form, float (*rows)[kMostK]) {
  FragmentWords<uint32_t, 2 * kMostLines> words(c, slots, form.num_a());
  unsigned per_line = elements_per_line(form.a);
  for (unsigned line = 0; line < form.lines; ++line) {
    for (unsigned block = 0; block < form.row_blocks; ++block) {
      for (unsigned row = 0; row < 8; ++row) {
        widen_line(form.a, words.line(line * form.row_blocks + block, row),
                   rows[8 * block + row] + line * per_line);
      }
    }
  }
}

void widen_b(Context& c, const Slot* slots, const MmaForm& form, float* out) {
  FragmentWords<uint32_t, kMostLines> words(c, slots, form.num_b());
  unsigned per_line = elements_per_line(form.b);
  float columns[8][kMostK];
  for (unsigned line = 0; line < form.num_b(); ++line) {
    for (unsigned column = 0; column < 8; ++column) {
      widen_line(form.b, words.line(line, column), columns[column] + line * per_line);
    }
  }
  bool paired = form.d == Accumulator::kF16;
  interleave_columns(columns[0], kMostK, form.k(), paired ? kPairedColumns : kSplitColumns, out);
}

void load_tile(Context& c, const MmaOperands& operands, const MmaForm& form, Tile& tile) {
  widen_a(c, operands.a, form, tile.a);
  if (form.has(MmaForm::kSparse)) {
    FragmentWords<uint32_t, 1> metadata(c, operands.metadata, 1);
    spread_rows(form.a, form.lines, metadata.words()[0], form.selector(), tile.a);
  }
  widen_b(c, operands.b, form, tile.b);
}

void multiply(const Tile& tile, const MmaForm& form, V8f* sums) {
  const float* b = tile.b;
  for (unsigned block = 0; block < form.row_blocks; ++block) {
    auto* of_block = reinterpret_cast<V8f(*)[1]>(sums + 8 * block);
    multiply_tile<8, 1>(tile.a[8 * block], kMostK, &b, form.k(), of_block);
  }
}

/// In another order of the columns than its own.
V8f reordered(V8f value, const int* order) {
  __m256i places = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(order));
  return reinterpret_cast<V8f>(_mm256_permutevar8x32_ps(reinterpret_cast<__m256>(value), places));
}

/// Row `row` of C, in the order that D's columns have.
V8f addend_row(const FragmentWords<uint32_t, 4>& addend, const MmaForm& form, unsigned row) {
  constexpr int kFromSplit[8] = {0, 4, 1, 5, 2, 6, 3, 7};
  bool paired = form.d == Accumulator::kF16;
  if (form.c == Accumulator::kF16) {
    V8h halves;
    std::memcpy(&halves, addend.line(row / 8, row % 8), sizeof halves);
    V8f value = F16::widen(halves);
    return paired ? value : reordered(value, kSplitColumns);
  }
  unsigned at = row / 8 * 2;
  V8f value = join_columns(addend.words()[at], addend.words()[at + 1], row % 8);
  return paired ? reordered(value, kFromSplit) : value;
}

void put_row(const MmaForm& form, unsigned row, V8f value, MmaResult& result) {
  if (form.d == Accumulator::kF16) {
    V8h halves = F16::narrow(value);
    std::memcpy(result.words(row / 8) + row % 8 * 4, &halves, sizeof halves);
    return;
  }
  unsigned at = row / 8 * 2;
  split_columns(value, result.words(at), result.words(at + 1), row % 8);
}

void add_floats(Context& c, const MmaOperands& operands, const MmaForm& form, MmaResult& result) {
  Tile tile;
  load_tile(c, operands, form, tile);
  FragmentWords<uint32_t, 4> addend(c, operands.c, form.num_c());
  V8f sums[kMostRows];
  unsigned rows = 8u * form.row_blocks;
  for (unsigned row = 0; row < rows; ++row) sums[row] = addend_row(addend, form, row);
  multiply(tile, form, sums);
  for (unsigned row = 0; row < rows; ++row) {
    put_row(form, row, with_canonical_nan(sums[row]), result);
  }
}

void add_integers(Context& c, const MmaOperands& operands, const MmaForm& form, MmaResult& result) {
  Tile tile;
  load_tile(c, operands, form, tile);
  FragmentWords<uint32_t, 4> addend(c, operands.c, form.num_c());
  V8f products[kMostRows] = {};
  multiply(tile, form, products);
  for (unsigned row = 0; row < 8u * form.row_blocks; ++row) {
    auto start = reinterpret_cast<V8i>(addend_row(addend, form, row));
    V8i sum = add_products(start, products[row], form.has(MmaForm::kSaturates));
    put_row(form, row, reinterpret_cast<V8f>(sum), result);
  }
}

/// Single bits: the number of ones in the and, or the xor, of a row and a
/// column.
void add_bits(Context& c, const MmaOperands& operands, const MmaForm& form, MmaResult& result) {
  FragmentWords<uint32_t, 4> a(c, operands.a, form.num_a());
  FragmentWords<uint32_t, 2> b(c, operands.b, form.num_b());
  FragmentWords<uint32_t, 4> addend(c, operands.c, form.num_c());
  for (unsigned row = 0; row < 8u * form.row_blocks; ++row) {
    for (unsigned column = 0; column < 8; ++column) {
      int ones = 0;
      for (unsigned line = 0; line < form.lines; ++line) {
        uint64_t of_a[2], of_b[2];
        std::memcpy(of_a, a.line(line * form.row_blocks + row / 8, row % 8), sizeof of_a);
        std::memcpy(of_b, b.line(line, column), sizeof of_b);
        for (int i = 0; i < 2; ++i) {
          ones += std::popcount(form.has(MmaForm::kXor) ? of_a[i] ^ of_b[i] : of_a[i] & of_b[i]);
        }
      }
      unsigned index = row / 8 * 2 + column % 2;
      unsigned lane = row % 8 * 4 + column / 2;
      result.words(index)[lane] = addend.words()[index][lane] + static_cast<uint32_t>(ones);
    }
  }
}

/// .f64: a chain of fma in the order of k.
void add_doubles(Context& c, const MmaOperands& operands, const MmaForm& form, MmaResult& result) {
  FragmentWords<double, 2 * kMostLines> a(c, operands.a, form.num_a());
  FragmentWords<double, kMostLines> b(c, operands.b, form.num_b());
  FragmentWords<double, 4> addend(c, operands.c, form.num_c());
  RoundingScope scope(static_cast<Rounding>(form.rounding), &result);
  for (unsigned row = 0; row < 8u * form.row_blocks; ++row) {
    for (unsigned column = 0; column < 8; ++column) {
      unsigned index = row / 8 * 2 + column % 2;
      unsigned lane = row % 8 * 4 + column / 2;
      double sum = addend.words()[index][lane];
      for (unsigned k = 0; k < 4u * form.lines; ++k) {
        sum = std::fma(a.line(k / 4 * form.row_blocks + row / 8, row % 8)[k % 4],
                       b.line(k / 4, column)[k % 4], sum);
      }
      result.doubles(index)[lane] = sum != sum ? std::bit_cast<double>(kDefaultNan64) : sum;
    }
  }
}

}  // namespace

void multiply_add(Context& c, const MmaOperands& operands, const MmaForm& form, MmaResult& result) {
  switch (form.d) {
    case Accumulator::kF32:
    case Accumulator::kF16:
      return add_floats(c, operands, form, result);
    case Accumulator::kS32:
      return form.a == MatrixType::kB1 ? add_bits(c, operands, form, result)
                                       : add_integers(c, operands, form, result);
    case Accumulator::kF64:
      return add_doubles(c, operands, form, result);
  }
}

void store_result(Context& c, const MmaForm& form, const Slot* d, const MmaResult& result) {
  for (unsigned i = 0; i < form.num_d(); ++i) {
    if (d[i].index == kNoSlot) continue;
    c.meta[d[i].index].is_vector = 1;
    size_t bytes = kLanes * (form.d == Accumulator::kF64 ? sizeof(double) : sizeof(uint32_t));
    std::memcpy(vector_of<std::byte>(c, d[i]), result.lanes[i], bytes);
  }
}

}  // namespace cb::sim
