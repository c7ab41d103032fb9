// wgmma: D = A * B + D of four warps, asynchronously. Each warp computes its
// own 16 of the 64 rows. The result is in the registers at once, which only a
// program that looks at them before wgmma.wait_group could tell; what is
// asynchronous is the time.
//
// B is the same for the four warps, and turning it into vectors of f32 costs as
// much as a quarter of the multiplications. So the last few are kept, and taken
// again where the same bytes come.

#include "simulator/exec/wgmma_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "simulator/exec/matrix_sparse.h"
#include "simulator/exec/memory_ops_lists.h"
#include "simulator/exec/wgmma_descriptor.h"

namespace cb::sim {
namespace {

constexpr unsigned kMostBlocks = 32;
constexpr unsigned kMostLines = 4;
constexpr unsigned kRows = 16;
constexpr unsigned kLinesA = kWgmmaLinesOfA;
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

}  // namespace

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

const MicroOp* wgmma_fence_op(Context& c, const MicroOp* op) {
  return gather_warp(c, op) ? op + 1 : nullptr;
}
const MicroOp* wgmma_commit_op(Context& c, const MicroOp* op) {
  if (!gather_warp(c, op)) return nullptr;
  commit_tensor_group(c);
  return op + 1;
}
const MicroOp* wgmma_wait_op(Context& c, const MicroOp* op) {
  if (!gather_warp(c, op)) return nullptr;
  wait_tensor_groups(c, static_cast<unsigned>(op->immediate));
  return op + 1;
}

}  // namespace cb::sim
