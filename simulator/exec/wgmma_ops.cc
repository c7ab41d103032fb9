// wgmma: D = A * B + D of four warps, asynchronously. Each warp computes its
// own 16 of the 64 rows. The result is in the registers at once, which only a
// program that looks at them before wgmma.wait_group could tell; what is
// asynchronous is the time.
//
// B is the same for the four warps, and turning it into vectors of f32 costs as
// much as a quarter of the multiplications. So the last few are kept, and taken
// again where the same bytes come.

#include "simulator/exec/wgmma_descriptor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "simulator/exec/matrix_fragments.h"
#include "simulator/exec/matrix_sparse.h"
#include "simulator/exec/memory_ops_lists.h"

namespace cb::sim {
namespace {

using ptx::Operand;
using ptx::Type;

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

constexpr unsigned kMostBlocks = 32;
constexpr unsigned kMostLines = 4;
constexpr unsigned kRows = 16;
constexpr unsigned kLinesA = 2;
constexpr unsigned kMostColumnK = 64;

/// The value that all active lanes have; nullopt after a finding.
std::optional<uint64_t> descriptor_of(Context& c, const MicroOp* op, Slot slot) {
  const Meta& meta = c.meta[slot.index];
  if (meta.uniform()) return meta.base;
  alignas(64) uint64_t room[kLanes];
  const uint64_t* lanes = read_lanes<uint64_t>(c, slot, room);
  for (int lane = 1; lane < kLanes; ++lane) {
    if (lanes[lane] == lanes[0]) continue;
    fault(c, op, Finding::Kind::kIllegalInstruction, lane,
          "the matrix descriptor must be the same in all threads of the "
          "warpgroup");
    return std::nullopt;
  }
  return lanes[0];
}

/// Reads lines of shared memory that a descriptor leads to.
class SharedLines {
 public:
  SharedLines(Context& c, const MicroOp* op) : c_(c), op_(op), limit_(c.shared_bytes) {}

  bool copy(uint32_t offset, void* to) {
    if (offset + kLineBytes > limit_) [[unlikely]]
      return refuse(offset);
    _mm_storeu_si128(static_cast<__m128i*>(to),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(c_.shared_base + offset)));
    return true;
  }

 private:
  bool refuse(uint32_t offset) {
    fault(c_, op_, Finding::Kind::kOutOfBounds, 0,
          fmt::format("a matrix descriptor leads to offset {} in {} bytes of "
                      "shared memory",
                      offset, limit_),
          c_.shared_base + offset, kLineBytes, false);
    return false;
  }

  Context& c_;
  const MicroOp* op_;
  uint64_t limit_;
};

struct Line {
  alignas(16) uint8_t bytes[kLineBytes];
};

/// The warp's rows of A as they are in registers or shared memory: two lines
/// each.
bool load_a(Context& c, const MicroOp* op, const WgmmaForm& form, unsigned warp,
            Line (*a)[kLinesA]) {
  if (form.has(WgmmaForm::kFragmentA)) {
    FragmentWords<uint32_t, 4> words(c, list_of(c, op) + 2 * form.num_d(), 4);
    for (unsigned row = 0; row < kRows; ++row) {
      for (unsigned line = 0; line < kLinesA; ++line) {
        std::memcpy(a[row][line].bytes, words.line(2 * line + row / 8, row % 8), kLineBytes);
      }
    }
    return true;
  }
  auto bits = descriptor_of(c, op, op->b);
  if (!bits) return false;
  MatrixDescriptor descriptor(*bits);
  SharedLines shared(c, op);
  if (!form.has(WgmmaForm::kAcrossA)) {
    for (unsigned row = 0; row < kRows; ++row) {
      for (unsigned line = 0; line < kLinesA; ++line) {
        if (!shared.copy(descriptor.line_along_k(warp * kRows + row, line), a[row][line].bytes)) {
          return false;
        }
      }
    }
    return true;
  }
  for (unsigned k = 0; k < 16; ++k) {
    for (unsigned block = 0; block < kRows / 8; ++block) {
      uint16_t rows[8];
      if (!shared.copy(descriptor.line_across(warp * 2 + block, k), rows)) return false;
      for (unsigned i = 0; i < 8; ++i) {
        std::memcpy(a[8 * block + i][k / 8].bytes + k % 8 * 2, &rows[i], 2);
      }
    }
  }
  return true;
}

/// B, as its lines and as vectors of eight columns for each k.
struct ConvertedB {
  uint64_t form = 0;
  uint64_t descriptor = 0;
  Line lines[kMostBlocks * 8 * kMostLines];
  alignas(32) float vectors[kMostBlocks][kMostColumnK * 8];
};

bool read_lines(Context& c, const MicroOp* op, const WgmmaForm& form, uint64_t bits, Line* lines) {
  MatrixDescriptor descriptor(bits);
  SharedLines shared(c, op);
  unsigned next = 0;
  if (form.has(WgmmaForm::kAcrossB)) {
    for (unsigned block = 0; block < form.blocks; ++block) {
      for (unsigned k = 0; k < form.k(); ++k) {
        if (!shared.copy(descriptor.line_across(block, k), lines[next++].bytes)) return false;
      }
    }
    return true;
  }
  for (unsigned column = 0; column < form.blocks * 8u; ++column) {
    for (unsigned line = 0; line < form.lines_b(); ++line) {
      if (!shared.copy(descriptor.line_along_k(column, line), lines[next++].bytes)) return false;
    }
  }
  return true;
}

void convert(const WgmmaForm& form, ConvertedB& b) {
  const int* order = form.d == Sum::kF16 ? kPairedColumns : kSplitColumns;
  const Line* line = b.lines;
  unsigned per_line = elements_per_line(form.b);
  for (unsigned block = 0; block < form.blocks; ++block) {
    if (form.has(WgmmaForm::kAcrossB)) {
      __m256i places = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(order));
      for (unsigned k = 0; k < form.k(); ++k) {
        float columns[kLineBytes * 2] = {};
        widen_line(form.b, (line++)->bytes, columns);
        _mm256_store_ps(&b.vectors[block][8 * k],
                        _mm256_permutevar8x32_ps(_mm256_loadu_ps(columns), places));
      }
      continue;
    }
    float columns[8][kMostColumnK];
    for (unsigned column = 0; column < 8; ++column) {
      for (unsigned i = 0; i < form.lines_b(); ++i) {
        widen_line(form.b, (line++)->bytes, columns[column] + i * per_line);
      }
    }
    interleave_columns(columns[0], kMostColumnK, form.k(), order, b.vectors[block]);
  }
}

/// B of this operation; nullptr after a finding. Valid until the next call.
const ConvertedB* load_b(Context& c, const MicroOp* op, const WgmmaForm& form) {
  constexpr size_t kKept = 8;
  thread_local std::array<ConvertedB, kKept + 1> kept;
  auto bits = descriptor_of(c, op, op->c);
  if (!bits) return nullptr;
  ConvertedB& fresh = kept[kKept];
  if (!read_lines(c, op, form, *bits, fresh.lines)) return nullptr;
  size_t bytes = form.blocks * 8 * form.lines_b() * sizeof(Line);
  uint64_t key = op->immediate | uint64_t{1} << 63;
  ConvertedB& entry = kept[(*bits ^ *bits >> 3) % kKept];
  bool known = entry.form == key && entry.descriptor == *bits &&
               std::memcmp(entry.lines, fresh.lines, bytes) == 0;
  if (known) return &entry;
  entry.form = key;
  entry.descriptor = *bits;
  std::memcpy(entry.lines, fresh.lines, bytes);
  if (form.b != MatrixType::kB1) convert(form, entry);
  return &entry;
}

/// Whether D is added to, as the predicate says; nullopt after a finding.
std::optional<bool> adds(Context& c, const MicroOp* op) {
  uint32_t lanes = c.predicates[op->a.index] ^ ((op->aux & kNegatedA) != 0 ? kAllLanes : 0);
  if (lanes == kAllLanes || lanes == 0) return lanes != 0;
  fault(c, op, Finding::Kind::kIllegalInstruction, std::countr_zero(~lanes),
        "scale-d must be the same in all threads of the warpgroup");
  return std::nullopt;
}

struct Accumulators {
  uint32_t* words[kMostBlocks * 4];

  Accumulators(Context& c, const Slot* slots, unsigned count) {
    for (unsigned i = 0; i < count; ++i) words[i] = materialise<uint32_t>(c, slots[i]);
  }
  /// Row `row` of 16 of block `block`.
  V8f load(Sum type, unsigned block, unsigned row) const {
    if (type == Sum::kF16) {
      V8h halves;
      std::memcpy(&halves, words[2 * block + row / 8] + row % 8 * 4, sizeof halves);
      return F16::widen(halves);
    }
    unsigned at = 4 * block + row / 8 * 2;
    return join_columns(words[at], words[at + 1], row % 8);
  }
  void store(Sum type, unsigned block, unsigned row, V8f value) {
    if (type == Sum::kF16) {
      V8h halves = F16::narrow(value);
      std::memcpy(words[2 * block + row / 8] + row % 8 * 4, &halves, sizeof halves);
      return;
    }
    unsigned at = 4 * block + row / 8 * 2;
    split_columns(value, words[at], words[at + 1], row % 8);
  }
};

/// The sums of kTileRows rows and kBlocks blocks.
template <int kTileRows, int kBlocks>
void multiply_part(const float (*a)[kMostK], const ConvertedB& b, const WgmmaForm& form, bool add,
                   unsigned block, unsigned row, Accumulators& d) {
  V8f sums[kTileRows][kBlocks];
  const float* vectors[kBlocks];
  for (int j = 0; j < kBlocks; ++j) vectors[j] = b.vectors[block + static_cast<unsigned>(j)];
  bool from_zero = !add || form.d == Sum::kS32;
  for (int i = 0; i < kTileRows; ++i) {
    for (int j = 0; j < kBlocks; ++j) {
      sums[i][j] = from_zero ? V8f{}
                             : d.load(form.d, block + static_cast<unsigned>(j),
                                      row + static_cast<unsigned>(i));
    }
  }
  multiply_tile<kTileRows, kBlocks>(a[row], kMostK, vectors, form.k(), sums);
  for (int i = 0; i < kTileRows; ++i) {
    for (int j = 0; j < kBlocks; ++j) {
      unsigned of_block = block + static_cast<unsigned>(j), of_row = row + static_cast<unsigned>(i);
      V8f value = with_canonical_nan(sums[i][j]);
      if (form.d == Sum::kS32) {
        V8i start = add ? reinterpret_cast<V8i>(d.load(form.d, of_block, of_row)) : V8i{};
        value =
            reinterpret_cast<V8f>(add_products(start, sums[i][j], form.has(WgmmaForm::kSaturates)));
      }
      d.store(form.d, of_block, of_row, value);
    }
  }
}

void multiply(const float (*a)[kMostK], const ConvertedB& b, const WgmmaForm& form, bool add,
              Accumulators& d) {
  unsigned block = 0;
  for (; block + 2 <= form.blocks; block += 2) {
    for (unsigned row = 0; row < kRows; row += 4) {
      multiply_part<4, 2>(a, b, form, add, block, row, d);
    }
  }
  if (block == form.blocks) return;
  for (unsigned row = 0; row < kRows; row += 8) multiply_part<8, 1>(a, b, form, add, block, row, d);
}

/// Single bits: the number of ones that a row and a column have in common.
void count_bits(const Line (*a)[kLinesA], const ConvertedB& b, const WgmmaForm& form, bool add,
                Accumulators& d) {
  for (unsigned row = 0; row < kRows; ++row) {
    for (unsigned column = 0; column < form.blocks * 8u; ++column) {
      uint64_t of_a[4], of_b[4];
      std::memcpy(of_a, a[row], sizeof of_a);
      std::memcpy(of_b, b.lines + column * kLinesA, sizeof of_b);
      int ones = 0;
      for (int i = 0; i < 4; ++i) ones += std::popcount(of_a[i] & of_b[i]);
      uint32_t& word =
          d.words[column / 8 * 4 + row / 8 * 2 + column % 2][row % 8 * 4 + column % 8 / 2];
      word = (add ? word : 0) + static_cast<uint32_t>(ones);
    }
  }
}

const MicroOp* wgmma_op(Context& c, const MicroOp* op) {
  if (!gather_warp(c, op)) return nullptr;
  WgmmaForm form = WgmmaForm::of(op);
  auto warp = rank_in_warpgroup(c);
  if (!warp) {
    return fault(c, op, Finding::Kind::kIllegalInstruction, 0,
                 "wgmma needs four whole warps, the first of which has a "
                 "number that is a multiple "
                 "of 4");
  }
  auto add = adds(c, op);
  if (!add) return nullptr;
  Line lines[kRows][kLinesA];
  if (!load_a(c, op, form, *warp, lines)) return nullptr;
  const ConvertedB* b = load_b(c, op, form);
  if (b == nullptr) return nullptr;
  const Slot* slots = list_of(c, op);
  Accumulators d(c, slots, form.num_d());
  if (form.a == MatrixType::kB1) {
    count_bits(lines, *b, form, *add, d);
  } else {
    alignas(32) float a[kRows][kMostK];
    for (unsigned row = 0; row < kRows; ++row) {
      for (unsigned line = 0; line < kLinesA; ++line) {
        widen_line(form.a, lines[row][line].bytes, a[row] + line * elements_per_line(form.a));
      }
    }
    if (form.has(WgmmaForm::kSparse)) {
      unsigned fragments = form.has(WgmmaForm::kFragmentA) ? 4 : 0;
      FragmentWords<uint32_t, 1> metadata(c, slots + 2 * form.num_d() + fragments, 1);
      spread_rows(form.a, kLinesA, metadata.words()[0], form.selector, a);
    }
    if (form.has(WgmmaForm::kNegates)) {
      for (auto& row : a) {
        for (unsigned k = 0; k < form.k(); ++k) row[k] = -row[k];
      }
    }
    multiply(a, *b, form, *add, d);
  }
  uint64_t macs =
      uint64_t{kRows} * form.blocks * 8 * form.k() / (form.has(WgmmaForm::kSparse) ? 2 : 1);
  charge_tensor(c, op, {.macs = macs, .bits = bits_of(form.a), .warpgroup = true}, 0);
  return op + 1;
}

const MicroOp* fence_op(Context& c, const MicroOp* op) {
  return gather_warp(c, op) ? op + 1 : nullptr;
}
const MicroOp* commit_op(Context& c, const MicroOp* op) {
  if (!gather_warp(c, op)) return nullptr;
  commit_tensor_group(c);
  return op + 1;
}
const MicroOp* wait_op(Context& c, const MicroOp* op) {
  if (!gather_warp(c, op)) return nullptr;
  wait_tensor_groups(c, static_cast<unsigned>(op->immediate));
  return op + 1;
}

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
    unsigned last = selectors_for(form.a, kLinesA) - 1;
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
  constexpr OpFn kHandlers[] = {fence_op, commit_op, wait_op};
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
