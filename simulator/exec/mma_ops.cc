// mma: D = A * B + C of one warp, all four in registers. Rows 8i to 8i + 7 of a piece of A are one
// register, so are eight columns of a piece of B, and of an accumulator's rows two registers hold
// the even and the odd columns (matrix_tile.h). Registers of A and of accumulators alternate
// between the upper and the lower eight rows.

#include "simulator/exec/mma_form.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "simulator/exec/directed.h"
#include "simulator/exec/memory_ops_lists.h"

namespace cb::sim {

using ptx::Type;

std::optional<MatrixType> matrix_type_of(std::string_view name) {
  constexpr std::pair<std::string_view, MatrixType> kNames[] = {
      {"f16", MatrixType::kF16},   {"bf16", MatrixType::kBf16}, {"tf32", MatrixType::kTf32},
      {"e4m3", MatrixType::kE4m3}, {"e5m2", MatrixType::kE5m2}, {"s8", MatrixType::kS8},
      {"u8", MatrixType::kU8},     {"s4", MatrixType::kS4},     {"u4", MatrixType::kU4},
      {"b1", MatrixType::kB1},     {"f64", MatrixType::kF64}};
  for (const auto& [known, type] : kNames) {
    if (known == name) return type;
  }
  return std::nullopt;
}

namespace {

constexpr unsigned kMostRows = 16;
constexpr unsigned kMostLines = 4;

/// The operands of one instruction in its list: D, A, B, C, and the metadata of a sparse A.
struct Operands {
  const Slot* d;
  const Slot* a;
  const Slot* b;
  const Slot* c;
  const Slot* metadata;

  Operands(Context& context, const MicroOp* op, const MmaForm& form)
      : d(list_of(context, op)),
        a(d + form.num_d()),
        b(a + form.num_a()),
        c(b + form.num_b()),
        metadata(c + form.num_c()) {}
};

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

void load_tile(Context& c, const Operands& operands, const MmaForm& form, Tile& tile) {
  widen_a(c, operands.a, form, tile.a);
  widen_b(c, operands.b, form, tile.b);
}

void multiply(const Tile& tile, const MmaForm& form, V8f* sums) {
  const float* b = tile.b;
  for (unsigned block = 0; block < form.row_blocks; ++block) {
    auto* of_block = reinterpret_cast<V8f(*)[1]>(sums + 8 * block);
    multiply_tile<8, 1>(tile.a[8 * block], kMostK, &b, form.k(), of_block);
  }
}

/// .f32 and .s32 accumulators.
const MicroOp* mma_words_op(Context& c, const MicroOp* op) {
  if (!gather_warp(c, op)) return nullptr;
  MmaForm form = MmaForm::of(op);
  Operands operands(c, op, form);
  Tile tile;
  load_tile(c, operands, form, tile);
  FragmentWords<uint32_t, 4> addend(c, operands.c, form.num_c());
  const uint32_t* const* words = addend.words();
  V8f sums[kMostRows];
  bool whole_numbers = form.d == Accumulator::kS32;
  for (unsigned row = 0; row < 8u * form.row_blocks; ++row) {
    unsigned at = row / 8 * 2;
    sums[row] = whole_numbers ? V8f{} : join_columns(words[at], words[at + 1], row % 8);
  }
  multiply(tile, form, sums);
  for (unsigned row = 0; row < 8u * form.row_blocks; ++row) {
    if (whole_numbers) {
      unsigned at = row / 8 * 2;
      auto start = reinterpret_cast<V8i>(join_columns(words[at], words[at + 1], row % 8));
      V8i sum = add_products(start, sums[row], form.has(MmaForm::kSaturates));
      sums[row] = reinterpret_cast<V8f>(sum);
    } else {
      sums[row] = with_canonical_nan(sums[row]);
    }
  }
  alignas(64) uint32_t sink[kLanes];
  for (unsigned block = 0; block < form.row_blocks; ++block) {
    auto* even = result_lanes<uint32_t>(c, operands.d[2 * block], sink);
    auto* odd = result_lanes<uint32_t>(c, operands.d[2 * block + 1], sink);
    for (unsigned row = 0; row < 8; ++row) split_columns(sums[8 * block + row], even, odd, row);
  }
  charge_tensor(c, op, form.work(), form.num_d());
  return op + 1;
}

/// .f16 accumulators: a register has a row's eight columns in order.
const MicroOp* mma_halves_op(Context& c, const MicroOp* op) {
  if (!gather_warp(c, op)) return nullptr;
  MmaForm form = MmaForm::of(op);
  Operands operands(c, op, form);
  Tile tile;
  load_tile(c, operands, form, tile);
  FragmentWords<uint32_t, 2> addend(c, operands.c, form.num_c());
  V8f sums[kMostRows];
  for (unsigned row = 0; row < 8u * form.row_blocks; ++row) {
    V8h halves;
    std::memcpy(&halves, addend.line(row / 8, row % 8), sizeof halves);
    sums[row] = F16::widen(halves);
  }
  multiply(tile, form, sums);
  alignas(64) uint32_t sink[kLanes];
  for (unsigned block = 0; block < form.row_blocks; ++block) {
    auto* words = result_lanes<uint32_t>(c, operands.d[block], sink);
    for (unsigned row = 0; row < 8; ++row) {
      V8h halves = F16::narrow(sums[8 * block + row]);
      std::memcpy(words + 4 * row, &halves, sizeof halves);
    }
  }
  charge_tensor(c, op, form.work(), form.num_d());
  return op + 1;
}

/// Single bits: the number of ones in the and, or the xor, of a row and a column.
const MicroOp* mma_bits_op(Context& c, const MicroOp* op) {
  if (!gather_warp(c, op)) return nullptr;
  MmaForm form = MmaForm::of(op);
  Operands operands(c, op, form);
  FragmentWords<uint32_t, 4> a_words(c, operands.a, form.num_a());
  FragmentWords<uint32_t, 2> b_words(c, operands.b, form.num_b());
  FragmentWords<uint32_t, 4> addend(c, operands.c, form.num_c());
  uint32_t result[4][kLanes];
  for (unsigned row = 0; row < 8u * form.row_blocks; ++row) {
    for (unsigned column = 0; column < 8; ++column) {
      int ones = 0;
      for (unsigned line = 0; line < form.lines; ++line) {
        uint64_t of_a[2], of_b[2];
        std::memcpy(of_a, a_words.line(line * form.row_blocks + row / 8, row % 8), sizeof of_a);
        std::memcpy(of_b, b_words.line(line, column), sizeof of_b);
        for (int i = 0; i < 2; ++i) {
          ones += std::popcount(form.has(MmaForm::kXor) ? of_a[i] ^ of_b[i] : of_a[i] & of_b[i]);
        }
      }
      unsigned index = row / 8 * 2 + column % 2;
      unsigned lane = row % 8 * 4 + column / 2;
      result[index][lane] = addend.words()[index][lane] + static_cast<uint32_t>(ones);
    }
  }
  alignas(64) uint32_t sink[kLanes];
  for (unsigned i = 0; i < form.num_d(); ++i) {
    std::memcpy(result_lanes<uint32_t>(c, operands.d[i], sink), result[i], sizeof result[i]);
  }
  charge_tensor(c, op, form.work(), form.num_d());
  return op + 1;
}

/// .f64: a chain of fma in the order of k.
const MicroOp* mma_doubles_op(Context& c, const MicroOp* op) {
  if (!gather_warp(c, op)) return nullptr;
  MmaForm form = MmaForm::of(op);
  Operands operands(c, op, form);
  FragmentWords<double, 2 * kMostLines> a(c, operands.a, form.num_a());
  FragmentWords<double, kMostLines> b(c, operands.b, form.num_b());
  FragmentWords<double, 4> addend(c, operands.c, form.num_c());
  struct {
    double result[4][kLanes];
  } values;
  {
    RoundingScope scope(static_cast<Rounding>(form.rounding), &values);
    for (unsigned row = 0; row < 8u * form.row_blocks; ++row) {
      for (unsigned column = 0; column < 8; ++column) {
        unsigned index = row / 8 * 2 + column % 2;
        unsigned lane = row % 8 * 4 + column / 2;
        double sum = addend.words()[index][lane];
        for (unsigned k = 0; k < 4u * form.lines; ++k) {
          sum = std::fma(a.line(k / 4 * form.row_blocks + row / 8, row % 8)[k % 4],
                         b.line(k / 4, column)[k % 4], sum);
        }
        values.result[index][lane] = sum != sum ? std::bit_cast<double>(kDefaultNan64) : sum;
      }
    }
  }
  alignas(64) double sink[kLanes];
  for (unsigned i = 0; i < form.num_d(); ++i) {
    std::memcpy(result_lanes<double>(c, operands.d[i], sink), values.result[i],
                sizeof values.result[i]);
  }
  charge_tensor(c, op, form.work(), form.num_d());
  return op + 1;
}

struct Shape {
  std::string_view name;
  uint8_t row_blocks;
  uint8_t k;
};
constexpr Shape kShapes[] = {
    {"m8n8k4", 1, 4},    {"m8n8k16", 1, 16},    {"m8n8k32", 1, 32},  {"m8n8k128", 1, 128},
    {"m16n8k4", 2, 4},   {"m16n8k8", 2, 8},     {"m16n8k16", 2, 16}, {"m16n8k32", 2, 32},
    {"m16n8k64", 2, 64}, {"m16n8k128", 2, 128},
};

std::optional<Accumulator> accumulator_of(std::string_view name) {
  if (name == "f32") return Accumulator::kF32;
  if (name == "f16") return Accumulator::kF16;
  if (name == "s32") return Accumulator::kS32;
  if (name == "f64") return Accumulator::kF64;
  return std::nullopt;
}

bool takes(MatrixType a, MatrixType b, Accumulator c) {
  auto within = [](MatrixType type, MatrixType first, MatrixType last) {
    return type >= first && type <= last;
  };
  if (within(a, MatrixType::kE4m3, MatrixType::kE5m2)) {
    return within(b, MatrixType::kE4m3, MatrixType::kE5m2) && c <= Accumulator::kF16;
  }
  if (within(a, MatrixType::kS8, MatrixType::kU8)) {
    return within(b, MatrixType::kS8, MatrixType::kU8) && c == Accumulator::kS32;
  }
  if (within(a, MatrixType::kS4, MatrixType::kU4)) {
    return within(b, MatrixType::kS4, MatrixType::kU4) && c == Accumulator::kS32;
  }
  if (a != b) return false;
  if (a == MatrixType::kF16) return c <= Accumulator::kF16;
  if (a == MatrixType::kB1) return c == Accumulator::kS32;
  return c == (a == MatrixType::kF64 ? Accumulator::kF64 : Accumulator::kF32);
}

/// Lines of A in m8 and m16 for a shape's k; 0 where sm_90 does not have it.
uint8_t lines_for(MatrixType type, const Shape& shape, bool sparse) {
  unsigned per_line = type == MatrixType::kF64 ? 4 : elements_per_line(type);
  unsigned k = sparse ? shape.k / 2 : shape.k;
  if (k % per_line != 0) return 0;
  unsigned lines = k / per_line;
  if (sparse) {
    bool is_fp8 = type == MatrixType::kE4m3 || type == MatrixType::kE5m2;
    bool exists = shape.row_blocks == 2 && type != MatrixType::kB1 && type != MatrixType::kF64 &&
                  (lines == 2 || (lines == 1 && !is_fp8));
    return exists ? static_cast<uint8_t>(lines) : 0;
  }
  if (shape.row_blocks == 1) {
    bool floats = type < MatrixType::kS8;
    return lines == 1 && !floats ? 1 : 0;
  }
  bool exists = lines == 1 || lines == 2 || (lines == 4 && type == MatrixType::kF64);
  return exists ? static_cast<uint8_t>(lines) : 0;
}

OpFn handler_of(const MmaForm& form) {
  if (form.a == MatrixType::kB1) return mma_bits_op;
  if (form.a == MatrixType::kF64) return mma_doubles_op;
  return form.d == Accumulator::kF16 ? mma_halves_op : mma_words_op;
}

/// Takes the shape; nullptr when it is none of mma's.
const Shape* take_shape(OpQuery& query) {
  // The table has no room for k = 256, which only .b1 has: m16n8k256 is the one shape of its own.
  static constexpr Shape kLongest = {"m16n8k256", 2, 0};
  if (query.take(kLongest.name)) return &kLongest;
  for (const Shape& shape : kShapes) {
    if (query.take(shape.name)) return &shape;
  }
  return nullptr;
}

Type register_of(Accumulator accumulator) {
  return accumulator == Accumulator::kF64 ? Type::kF64 : Type::kB32;
}

std::optional<Result<OpSpec>> find_mma(OpQuery& query) {
  if (query.has("m8n8k4") && query.has("f16")) return find_quad_mma(query);
  MmaForm form;
  bool whole = query.take("sync") && query.take("aligned");
  if (query.take("sp") || query.take("sp::ordered_metadata")) form.flags |= MmaForm::kSparse;
  const Shape* shape = take_shape(query);
  whole = whole && query.take("row") && query.take("col");
  if (query.take("satfinite")) form.flags |= MmaForm::kSaturates;
  if (auto rounding = query.take_rounding()) form.rounding = static_cast<uint8_t>(*rounding);
  bool bits = query.take("popc");
  bool is_xor = query.take("xor");
  if (is_xor) form.flags |= MmaForm::kXor;
  bits = bits && (is_xor || query.take("and"));
  std::string_view names[4];
  for (std::string_view& name : names) {
    name = query.next();
    query.take(name);
  }
  auto d = accumulator_of(names[0]), c = accumulator_of(names[3]);
  auto a = matrix_type_of(names[1]), b = matrix_type_of(names[2]);
  if (!whole || shape == nullptr || !d || !c || !a || !b) return query.refuse_modifiers();
  form.a = *a, form.b = *b, form.c = *c, form.d = *d;
  form.row_blocks = shape->row_blocks;
  form.lines = shape->k == 0 ? (*a == MatrixType::kB1 ? 2 : 0)
                             : lines_for(*a, *shape, form.has(MmaForm::kSparse));
  bool agrees = form.c == form.d && takes(*a, *b, *c) && form.lines != 0 &&
                bits == (*a == MatrixType::kB1) &&
                (!form.has(MmaForm::kSaturates) || is_integer(*a)) &&
                (form.rounding == 0 || *a == MatrixType::kF64);
  if (!agrees) return query.refuse_modifiers();
  if (form.has(MmaForm::kSparse)) return query.refuse("sparse matrices are not supported");
  OpSpec spec;
  spec.fn = handler_of(form);
  spec.immediate = form.immediate();
  spec.flags = kOpBarrier | kOpLoad | kOpListSource;
  Type words = form.a == MatrixType::kF64 ? Type::kF64 : Type::kB32;
  const std::tuple<unsigned, Type, bool> operands[] = {{form.num_d(), register_of(form.d), true},
                                                       {form.num_a(), words, false},
                                                       {form.num_b(), words, false},
                                                       {form.num_c(), register_of(form.c), false}};
  size_t index = 0;
  for (const auto& [count, type, is_destination] : operands) {
    if (auto problem = add_fragment(query, spec, index++, count, type, is_destination)) {
      return query.refuse(*problem);
    }
  }
  return query.finish(std::move(spec), 4);
}

constexpr OpEntry kEntries[] = {{"mma", find_mma}};

}  // namespace

std::span<const OpEntry> mma_entries() { return kEntries; }

}  // namespace cb::sim
