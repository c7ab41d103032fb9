#pragma once

// What the video instructions on one and on several parts of a register share.

#include <algorithm>
#include <cstdint>
#include <optional>

#include "simulator/exec/alu_query.h"

namespace cb::sim {

enum class VideoOperation : uint8_t {
  kAdd,
  kSub,
  kAbsDiff,
  kMin,
  kMax,
  kAverage,
  kSet,
  kShiftLeft,
  kShiftRight,
  kMad,
};

enum class VideoCompare : uint8_t { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual };

inline bool holds(VideoCompare compare, __int128 a, __int128 b) {
  switch (compare) {
    case VideoCompare::kEqual:
      return a == b;
    case VideoCompare::kNotEqual:
      return a != b;
    case VideoCompare::kLess:
      return a < b;
    case VideoCompare::kLessEqual:
      return a <= b;
    case VideoCompare::kGreater:
      return a > b;
    case VideoCompare::kGreaterEqual:
      break;
  }
  return a >= b;
}

inline std::optional<VideoCompare> take_video_compare(AluQuery& query) {
  constexpr std::string_view kNames[] = {"eq", "ne", "lt", "le", "gt", "ge"};
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (query.take(kNames[i])) return static_cast<VideoCompare>(i);
  }
  return std::nullopt;
}

/// The low `bits` of a word as a number.
inline int64_t extend_field(uint32_t word, int bits, bool is_signed) {
  int unused = 32 - bits;
  auto top = static_cast<uint32_t>(word << unused);
  return is_signed ? static_cast<int64_t>(static_cast<int32_t>(top) >> unused)
                   : static_cast<int64_t>(top >> unused);
}

/// The nearest number of `bits` bits.
inline __int128 clamp_field(__int128 value, int bits, bool is_signed) {
  __int128 one = 1;
  __int128 low = is_signed ? -(one << (bits - 1)) : 0;
  __int128 high = (one << (is_signed ? bits - 1 : bits)) - 1;
  return std::clamp(value, low, high);
}

/// The operations that parts and whole registers have in common.
inline int64_t video_result(VideoOperation operation, int64_t a, int64_t b) {
  switch (operation) {
    case VideoOperation::kAdd:
      return a + b;
    case VideoOperation::kSub:
      return a - b;
    case VideoOperation::kAbsDiff:
      return a > b ? a - b : b - a;
    case VideoOperation::kMin:
      return std::min(a, b);
    case VideoOperation::kMax:
      return std::max(a, b);
    case VideoOperation::kAverage:
      // Halves are rounded up where the sum is not negative, down where it is.
      return a + b >= 0 ? (a + b + 1) >> 1 : (a + b) >> 1;
    default:
      return 0;
  }
}

}  // namespace cb::sim
