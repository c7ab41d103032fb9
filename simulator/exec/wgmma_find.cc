// find_wgmma: which forms of wgmma sm_90a has.

#include <fmt/format.h>

#include <algorithm>

#include "simulator/exec/matrix_sparse.h"
#include "simulator/exec/wgmma_form.h"

namespace cb::sim {
namespace {

using ptx::Operand;
using ptx::Type;

bool is_fp8(MatrixType type) { return type == MatrixType::kE4m3 || type == MatrixType::kE5m2; }
bool is_byte(MatrixType type) { return type == MatrixType::kS8 || type == MatrixType::kU8; }

bool takes(const WgmmaForm& form) {
  if (is_fp8(form.a)) return is_fp8(form.b) && form.d != Sum::kS32;
  if (is_byte(form.a)) return is_byte(form.b) && form.d == Sum::kS32;
  if (form.a != form.b) return false;
  if (form.a == MatrixType::kF16) return form.d != Sum::kS32;
  if (form.a == MatrixType::kB1) return form.d == Sum::kS32 && !form.has(WgmmaForm::kSparse);
  return (form.a == MatrixType::kBf16 || form.a == MatrixType::kTf32) && form.d == Sum::kF32;
}

/// Takes .m64nNkK. False where there is no such shape.
bool take_shape(OpQuery& query, WgmmaForm& form, unsigned& k) {
  std::string_view name = query.next();
  unsigned n = 0;
  if (!name.starts_with("m64n")) return false;
  size_t at = 4;
  auto number = [&](unsigned& value) {
    size_t first = at;
    for (; at < name.size() && at < first + 3 && name[at] >= '0' && name[at] <= '9'; ++at) {
      value = value * 10 + static_cast<unsigned>(name[at] - '0');
    }
    return at > first;
  };
  bool is_shape = number(n) && at < name.size() && name[at++] == 'k' && number(k) &&
                  at == name.size() && n % 8 == 0 && n >= 8 && n <= 256;
  if (!is_shape) return false;
  form.blocks = static_cast<uint8_t>(n / 8);
  return query.take(name);
}

/// Takes an immediate operand; nullopt where it is none of the two values.
std::optional<int64_t> constant(const OpQuery& query, size_t index, int64_t low, int64_t high) {
  if (!query.is(index, Operand::Kind::kImmediate)) return std::nullopt;
  auto value = static_cast<int64_t>(query.operand(index).bits);
  if (value != low && value != high) return std::nullopt;
  return value;
}

/// The constants behind scale-d: the scales of A and B, and how their lines
/// run.
std::optional<std::string> take_constants(const OpQuery& query, size_t index, WgmmaForm& form,
                                          size_t& end) {
  end = index;
  if (form.d == Sum::kS32) return std::nullopt;
  for (int i = 0; i < 2; ++i) {
    auto scale = constant(query, end, 1, -1);
    if (!scale) return fmt::format("operand {} must be 1 or -1", end + 1);
    if (*scale < 0) form.flags ^= WgmmaForm::kNegates;
    ++end;
  }
  if (bits_of(form.a) != 16) return std::nullopt;
  for (uint8_t flag : {WgmmaForm::kAcrossA, WgmmaForm::kAcrossB}) {
    if (flag == WgmmaForm::kAcrossA && form.has(WgmmaForm::kFragmentA)) continue;
    auto across = constant(query, end, 0, 1);
    if (!across) return fmt::format("operand {} must be 0 or 1", end + 1);
    if (*across != 0) form.flags |= flag;
    ++end;
  }
  return std::nullopt;
}

/// Everything between the opcode and the operands.
bool take_form(OpQuery& query, WgmmaForm& form) {
  bool whole = query.take("mma_async");
  if (query.take("sp")) form.flags |= WgmmaForm::kSparse;
  whole = query.take("sync") && query.take("aligned") && whole;
  unsigned k = 0;
  whole = whole && take_shape(query, form, k);
  if (query.take("satfinite")) form.flags |= WgmmaForm::kSaturates;
  if (!whole) return false;
  std::string_view sum = query.next();
  form.d = sum == "f16" ? Sum::kF16 : sum == "s32" ? Sum::kS32 : Sum::kF32;
  if (sum != "f16" && sum != "s32" && sum != "f32") return false;
  query.take(sum);
  for (MatrixType* type : {&form.a, &form.b}) {
    std::string_view name = query.next();
    auto known = matrix_type_of(name);
    if (!known) return false;
    *type = *known;
    query.take(name);
  }
  bool is_bits = form.a == MatrixType::kB1;
  if (is_bits && !(query.take("and") && query.take("popc"))) return false;
  bool whole_numbers = form.d == Sum::kS32;
  if (form.has(WgmmaForm::kSaturates) && !is_byte(form.a)) return false;
  // Whole numbers come in 8, 24, and multiples of 16 columns.
  if (whole_numbers && form.blocks % 2 != 0 && form.blocks != 1 && form.blocks != 3) return false;
  return takes(form) && k == form.k();
}

std::optional<Result<OpSpec>> find_mma_async(OpQuery& query) {
  WgmmaForm form;
  if (!take_form(query, form)) return query.refuse_modifiers();
  OpSpec spec;
  spec.fn = wgmma_op;
  spec.flags = kOpBarrier | kOpSideEffect;
  if (query.is(1, Operand::Kind::kVector)) form.flags |= WgmmaForm::kFragmentA;
  // D twice, since it is read, too.
  std::optional<std::string> problem;
  for (bool is_destination : {true, false}) {
    if (!problem) problem = add_fragment(query, spec, 0, form.num_d(), Type::kB32, is_destination);
  }
  if (form.has(WgmmaForm::kFragmentA)) {
    if (!problem) problem = add_fragment(query, spec, 1, 4, Type::kB32, false);
    spec.flags |= kOpListSource;
  } else {
    add_plain(spec, 1, AluPlace::kB, Type::kB64);
  }
  add_plain(spec, 2, AluPlace::kC, Type::kB64);
  size_t next = 3;
  if (form.has(WgmmaForm::kSparse)) {
    unsigned last = selectors_for(form.a, kWgmmaLinesOfA) - 1;
    auto selector = constant(query, 4, 0, last);
    if (!selector && !problem) {
      problem = fmt::format("operand 5 must be a sparsity selector from 0 to {}", last);
    }
    form.selector = static_cast<uint8_t>(selector.value_or(0));
    add_listed(spec, 3, Type::kB32, false);
    next = 5;
  }
  add_plain(spec, next, AluPlace::kA, Type::kPred);
  size_t end = next + 1;
  if (!problem) problem = take_constants(query, next + 1, form, end);
  if (problem) return query.refuse(*problem);
  spec.immediate = form.immediate();
  return query.finish(std::move(spec), end);
}

std::optional<Result<OpSpec>> find_wgmma(OpQuery& query) {
  if (query.has("mma_async")) return find_mma_async(query);
  constexpr OpFn kHandlers[] = {wgmma_fence_op, wgmma_commit_op, wgmma_wait_op};
  int kind = query.take_one({"fence", "commit_group", "wait_group"});
  bool whole = query.take("sync") && query.take("aligned");
  OpSpec spec;
  if (whole && kind >= 0) spec.fn = kHandlers[kind];
  spec.flags = kOpBarrier | kOpSideEffect;
  if (kind != 2) return query.finish(std::move(spec), 0);
  if (!query.is(0, Operand::Kind::kImmediate)) return query.refuse("operand 1 must be a constant");
  spec.immediate = std::min<uint64_t>(query.operand(0).bits, TensorGroups::kMostPending);
  return query.finish(std::move(spec), 1);
}

constexpr OpEntry kEntries[] = {{"wgmma", find_wgmma}};

}  // namespace

std::span<const OpEntry> wgmma_entries() { return kEntries; }

}  // namespace cb::sim
