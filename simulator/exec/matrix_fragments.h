#pragma once

// Between registers and the lines of matrix_tile.h.

#include "simulator/exec/engine_port.h"
#include "simulator/exec/lanes.h"
#include "simulator/exec/matrix_tile.h"
#include "simulator/exec/op_query.h"

namespace cb::sim {

/// The registers of one operand, as arrays of their lanes.
template <typename Word, unsigned kMost>
class FragmentWords {
 public:
  FragmentWords(Context& c, const Slot* slots, unsigned count) {
    for (unsigned i = 0; i < count; ++i) words_[i] = read_lanes<Word>(c, slots[i], room_[i]);
  }
  /// Row `row` (0 to 7) of register `index`.
  const Word* line(unsigned index, unsigned row) const { return words_[index] + 4 * row; }
  const Word* const* words() const { return words_; }

 private:
  const Word* words_[kMost];
  alignas(64) Word room_[kMost][kLanes];
};

/// The lanes of a result, all of which are written.
template <typename Word>
inline Word* result_lanes(Context& c, Slot slot, Word* sink) {
  if (slot.index == kNoSlot) return sink;
  c.meta[slot.index].is_vector = 1;
  return vector_of<Word>(c, slot);
}

/// Eight f32 (or s32) of a row from two registers, in the order of kSplitColumns.
inline V8f join_columns(const uint32_t* even, const uint32_t* odd, unsigned row) {
  __m256i low =
      _mm256_castsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(even + 4 * row)));
  return reinterpret_cast<V8f>(_mm256_inserti128_si256(
      low, _mm_load_si128(reinterpret_cast<const __m128i*>(odd + 4 * row)), 1));
}
inline void split_columns(V8f value, uint32_t* even, uint32_t* odd, unsigned row) {
  auto words = reinterpret_cast<__m256i>(value);
  _mm_store_si128(reinterpret_cast<__m128i*>(even + 4 * row), _mm256_castsi256_si128(words));
  _mm_store_si128(reinterpret_cast<__m128i*>(odd + 4 * row), _mm256_extracti128_si256(words, 1));
}

/// True when all 32 lanes of the warp execute the operation together. Else the group waits for the
/// others, or there is a finding because some have exited.
inline bool gather_warp(Context& c, const MicroOp* op) {
  if (!gather_lanes(c, op, kAllLanes)) return false;
  if (c.mask == kAllLanes) [[likely]]
    return true;
  fault(c, op, Finding::Kind::kIllegalInstruction, std::countr_zero(~c.mask),
        "a matrix instruction needs all 32 threads of the warp");
  return false;
}

/// Lists operand `index`, a vector of `count` registers; nullopt when it is one, else what is
/// wrong.
std::optional<std::string> add_fragment(const OpQuery& query, OpSpec& spec, size_t index,
                                        unsigned count, ptx::Type type, bool is_destination);

std::optional<MatrixType> matrix_type_of(std::string_view name);

std::span<const OpEntry> matrix_move_entries();
std::span<const OpEntry> mma_entries();
std::span<const OpEntry> wgmma_entries();
std::span<const OpEntry> wmma_entries();

}  // namespace cb::sim
