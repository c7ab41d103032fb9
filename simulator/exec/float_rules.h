#pragma once

// What PTX adds to IEEE 754 arithmetic on .f32 and .f64: canonical NaNs, flushing of subnormal
// numbers, and saturation. Branch-free, so that loops over lanes vectorise.

#include <bit>
#include <cmath>
#include <cstdint>

#include "simulator/exec/lanes.h"

namespace cb::sim {

inline constexpr uint32_t kCanonicalNan32 = 0x7fffffff;
inline constexpr uint64_t kDefaultNan64 = 0xfff8000000000000;  ///< of an invalid operation
inline constexpr uint64_t kQuietBit64 = 0x0008000000000000;

inline float canonical_nan32() { return std::bit_cast<float>(kCanonicalNan32); }

/// A subnormal number becomes zero of the same sign.
inline float flush(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint32_t flushed = (bits & 0x7f800000) == 0 ? bits & 0x80000000 : bits;
  return std::bit_cast<float>(flushed);
}

/// Clamps to [0, 1]; NaN and -0 become +0.
template <typename T>
inline T saturate(T value) {
  T positive = value > 0 ? value : T{0};
  return positive < 1 ? positive : T{1};
}

/// The NaN of an f64 operation: the first NaN operand made quiet, else that of an invalid
/// operation. `result` is returned unless it is NaN.
inline double propagate_nan(double result, double a, double b) {
  uint64_t first = std::bit_cast<uint64_t>(a) | kQuietBit64;
  uint64_t second = std::bit_cast<uint64_t>(b) | kQuietBit64;
  uint64_t nan = b != b ? second : kDefaultNan64;
  nan = a != a ? first : nan;
  return result != result ? std::bit_cast<double>(nan) : result;
}
inline double propagate_nan(double result, double a) { return propagate_nan(result, a, a); }
inline double propagate_nan(double result, double a, double b, double c) {
  uint64_t third = std::bit_cast<uint64_t>(c) | kQuietBit64;
  uint64_t nan = c != c ? third : kDefaultNan64;
  nan = b != b ? std::bit_cast<uint64_t>(b) | kQuietBit64 : nan;
  nan = a != a ? std::bit_cast<uint64_t>(a) | kQuietBit64 : nan;
  return result != result ? std::bit_cast<double>(nan) : result;
}

/// Completes the raw result of an f32 operation.
template <bool ftz, bool sat>
inline float finish_f32(float raw) {
  if constexpr (sat) {
    float clamped = saturate(raw);
    return ftz ? flush(clamped) : clamped;
  } else {
    float value = ftz ? flush(raw) : raw;
    return value != value ? canonical_nan32() : value;
  }
}

template <bool ftz>
inline float operand_f32(float value) {
  return ftz ? flush(value) : value;
}

}  // namespace cb::sim
