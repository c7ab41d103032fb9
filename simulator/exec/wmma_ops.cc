// wmma.mma, as the mma products that it is made of.

#include <array>

#include "simulator/exec/memory_ops_lists.h"
#include "simulator/exec/wmma_fragment.h"

namespace cb::sim {

using ptx::Type;

const WmmaShape* take_wmma_shape(OpQuery& query) {
  static constexpr WmmaShape kShapes[] = {{"m16n16k16", 2, 2, 16}, {"m32n8k16", 4, 1, 16},
                                          {"m8n32k16", 1, 4, 16},  {"m16n16k8", 2, 2, 8},
                                          {"m8n8k4", 1, 1, 4},     {"m8n8k32", 1, 1, 32},
                                          {"m8n8k128", 1, 1, 128}};
  for (const WmmaShape& shape : kShapes) {
    if (query.take(shape.name)) return &shape;
  }
  return nullptr;
}

unsigned wmma_lines(MatrixType type, const WmmaShape& shape) {
  switch (type) {
    case MatrixType::kF16:
    case MatrixType::kBf16:
      return shape.k == 16 ? 2 : 0;
    case MatrixType::kTf32:
      return shape.k == 8 ? 2 : 0;
    case MatrixType::kS8:
    case MatrixType::kU8:
      return shape.k == 16 ? 1 : 0;
    case MatrixType::kS4:
    case MatrixType::kU4:
      return shape.k == 32 ? 1 : 0;
    case MatrixType::kB1:
      return shape.k == 128 ? 1 : 0;
    case MatrixType::kF64:
      return shape.k == 4 ? 1 : 0;
    case MatrixType::kE4m3:
    case MatrixType::kE5m2:
      break;
  }
  return 0;
}

bool wmma_accumulates(Accumulator accumulator, const WmmaShape& shape) {
  switch (accumulator) {
    case Accumulator::kF32:
      return shape.k == 16 || shape.k == 8;
    case Accumulator::kF16:
      return shape.k == 16;
    case Accumulator::kS32:
      return shape.k == 16 || shape.k >= 32;
    case Accumulator::kF64:
      return shape.k == 4;
  }
  return false;
}

namespace {

/// In MicroOp::aux: blocks of eight rows, and of eight columns from bit 3.
constexpr unsigned kBlockBits = 3;

const MicroOp* wmma_op(Context& c, const MicroOp* op) {
  if (!gather_warp(c, op)) return nullptr;
  MmaForm form = MmaForm::of(op);
  unsigned m_blocks = op->aux & ((1u << kBlockBits) - 1), n_blocks = op->aux >> kBlockBits;
  unsigned tiles = m_blocks / form.row_blocks;
  const Slot* d = list_of(c, op);
  const Slot* a = d + tiles * n_blocks * form.num_d();
  const Slot* b = a + wmma_operand_registers(form.a, m_blocks, form.lines);
  const Slot* addend = b + wmma_operand_registers(form.b, n_blocks, form.lines);
  MmaResult results[4];
  for (unsigned tile = 0; tile < tiles; ++tile) {
    for (unsigned column = 0; column < n_blocks; ++column) {
      unsigned index = tile * n_blocks + column;
      MmaOperands operands{.a = a + tile * form.num_a(),
                           .b = b + column * form.lines,
                           .c = addend + index * form.num_c()};
      multiply_add(c, operands, form, results[index]);
    }
  }
  for (unsigned index = 0; index < tiles * n_blocks; ++index) {
    store_result(c, form, d + index * form.num_d(), results[index]);
  }
  Resources::TensorWork work = form.work();
  work.macs *= tiles * n_blocks;
  charge_tensor(c, op, work, tiles * n_blocks * form.num_d());
  return op + 1;
}

/// The types behind the shape: of D and C for .f16, else of all four.
bool take_types(OpQuery& query, MmaForm& form) {
  auto d = take_accumulator(query);
  if (!d) return false;
  form.d = *d;
  auto c = take_accumulator(query);
  if (c && form.d <= Accumulator::kF16 && *c <= Accumulator::kF16) {
    form.c = *c;
    return true;
  }
  if (c && form.d == Accumulator::kF64) {
    // .f64 is a type of operands, too.
    form.a = form.b = MatrixType::kF64;
    form.c = Accumulator::kF64;
    return *c == form.c && query.take("f64") && query.take("f64");
  }
  auto a = take_matrix_type(query), b = take_matrix_type(query);
  c = take_accumulator(query);
  if (!a || a != b || !c || *c != form.d || *a == MatrixType::kF16) return false;
  form.a = form.b = *a;
  form.c = *c;
  return form.d ==
         (is_integer(*a) || *a == MatrixType::kB1 ? Accumulator::kS32 : Accumulator::kF32);
}

/// Layouts of A and B; those of narrow types are fixed.
bool take_layouts(OpQuery& query, bool& is_row_col) {
  std::string_view first = query.next();
  if ((first != "row" && first != "col") || !query.take(first)) return false;
  std::string_view second = query.next();
  if ((second != "row" && second != "col") || !query.take(second)) return false;
  is_row_col = first == "row" && second == "col";
  return true;
}

std::optional<Result<OpSpec>> find_wmma_mma(OpQuery& query) {
  MmaForm form;
  bool whole = query.take("mma");
  if (query.take("xor")) form.flags |= MmaForm::kXor;
  bool bits = query.take("and") || form.has(MmaForm::kXor);
  whole = whole && (!bits || query.take("popc")) && query.take("sync") && query.take("aligned");
  bool is_row_col = false;
  whole = whole && take_layouts(query, is_row_col);
  const WmmaShape* shape = whole ? take_wmma_shape(query) : nullptr;
  if (auto rounding = query.take_rounding()) form.rounding = static_cast<uint8_t>(*rounding);
  if (query.take("satfinite")) form.flags |= MmaForm::kSaturates;
  if (shape == nullptr || !take_types(query, form)) return query.refuse_modifiers();
  form.lines = static_cast<uint8_t>(wmma_lines(form.a, *shape));
  form.row_blocks = std::min<uint8_t>(shape->m_blocks, 2);
  bool narrow = bits_of(form.a) < 8;
  bool agrees = form.lines != 0 && bits == (form.a == MatrixType::kB1) && (!narrow || is_row_col) &&
                (!form.has(MmaForm::kSaturates) || is_integer(form.a)) &&
                (form.rounding == 0 || form.a == MatrixType::kF64);
  if (!agrees) return query.refuse_modifiers();
  OpSpec spec;
  spec.fn = wmma_op;
  spec.immediate = form.immediate();
  spec.aux = static_cast<uint8_t>(shape->m_blocks | shape->n_blocks << kBlockBits);
  spec.flags = kOpBarrier | kOpLoad | kOpListSource;
  unsigned products = shape->m_blocks / form.row_blocks * shape->n_blocks;
  Type words = form.a == MatrixType::kF64 ? Type::kF64 : Type::kB32;
  const std::pair<unsigned, bool> operands[] = {
      {products * form.num_d(), true},
      {wmma_operand_registers(form.a, shape->m_blocks, form.lines), false},
      {wmma_operand_registers(form.b, shape->n_blocks, form.lines), false},
      {products * form.num_c(), false}};
  size_t index = 0;
  for (auto [count, is_destination] : operands) {
    if (auto problem = add_fragment(query, spec, index++, count, words, is_destination)) {
      return query.refuse(*problem);
    }
  }
  return query.finish(std::move(spec), 4);
}

std::optional<Result<OpSpec>> find_wmma(OpQuery& query) {
  if (query.has("mma")) return find_wmma_mma(query);
  return wmma_move_entries()[0].find(query);
}

constexpr OpEntry kEntries[] = {{"wmma", find_wmma}};

}  // namespace

std::span<const OpEntry> wmma_entries() { return kEntries; }

}  // namespace cb::sim
