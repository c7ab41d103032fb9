// find_mma: which forms of mma sm_90 has.

#include "simulator/exec/mma_form.h"

#include <fmt/format.h>

#include <array>

#include "simulator/exec/matrix_sparse.h"
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

std::optional<Accumulator> take_accumulator(OpQuery& query) {
  constexpr std::pair<std::string_view, Accumulator> kNames[] = {{"f32", Accumulator::kF32},
                                                                 {"f16", Accumulator::kF16},
                                                                 {"s32", Accumulator::kS32},
                                                                 {"f64", Accumulator::kF64}};
  for (const auto& [name, accumulator] : kNames) {
    if (query.next() == name && query.take(name)) return accumulator;
  }
  return std::nullopt;
}

std::optional<MatrixType> take_matrix_type(OpQuery& query) {
  auto type = matrix_type_of(query.next());
  if (type) query.take(query.next());
  return type;
}

namespace {

/// The operands are D, A, B, C, and the metadata of a sparse A.
const MicroOp* mma_op(Context& c, const MicroOp* op) {
  if (!gather_warp(c, op)) return nullptr;
  MmaForm form = MmaForm::of(op);
  MmaOperands operands;
  const Slot* d = list_of(c, op);
  operands.a = d + form.num_d();
  operands.b = operands.a + form.num_a();
  operands.c = operands.b + form.num_b();
  operands.metadata = operands.c + form.num_c();
  MmaResult result;
  multiply_add(c, operands, form, result);
  store_result(c, form, d, result);
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

bool goes_with(MatrixType a, MatrixType b, Accumulator c) {
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

/// Takes the shape; nullptr when it is none of mma's.
const Shape* take_shape(OpQuery& query) {
  // The table has no room for k = 256, which only .b1 has: m16n8k256 is the one
  // shape of its own.
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
  auto d = take_accumulator(query);
  auto a = take_matrix_type(query), b = take_matrix_type(query);
  auto c = take_accumulator(query);
  if (!whole || shape == nullptr || !d || !c || !a || !b) return query.refuse_modifiers();
  form.a = *a, form.b = *b, form.c = *c, form.d = *d;
  form.row_blocks = shape->row_blocks;
  form.lines = shape->k == 0 ? (*a == MatrixType::kB1 ? 2 : 0)
                             : lines_for(*a, *shape, form.has(MmaForm::kSparse));
  bool agrees = form.c == form.d && goes_with(*a, *b, *c) && form.lines != 0 &&
                bits == (*a == MatrixType::kB1) &&
                (!form.has(MmaForm::kSaturates) || is_integer(*a)) &&
                (form.rounding == 0 || *a == MatrixType::kF64) &&
                !(form.has(MmaForm::kSparse) && bits_of(*a) == 8 && form.d == Accumulator::kF16);
  if (!agrees) return query.refuse_modifiers();
  if (form.has(MmaForm::kSparse)) {
    bool known = query.is(5, ptx::Operand::Kind::kImmediate) &&
                 query.operand(5).bits < selectors_for(form.a, form.lines);
    if (!known) {
      return query.refuse(fmt::format("operand 6 must be a sparsity selector from 0 to {}",
                                      selectors_for(form.a, form.lines) - 1));
    }
    form.flags |= static_cast<uint8_t>(query.operand(5).bits << MmaForm::kSelectorShift);
  }
  OpSpec spec;
  spec.fn = mma_op;
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
  if (form.has(MmaForm::kSparse)) add_listed(spec, 4, Type::kB32, false);
  return query.finish(std::move(spec), form.has(MmaForm::kSparse) ? 6 : 4);
}

constexpr OpEntry kEntries[] = {{"mma", find_mma}};

}  // namespace

std::span<const OpEntry> mma_entries() { return kEntries; }

}  // namespace cb::sim
