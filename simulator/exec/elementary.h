#pragma once

// Elementary functions for the approximate instructions. Hardware promises a few units in the last
// place of f32; these are computed in double precision with plain arithmetic only, so that every
// machine gives the same bits, and rounded once. Branch-free, so that loops over lanes vectorise.

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace cb::sim {

/// 2^x to about 2^-48, for |x| < 1000.
inline double exp2_double(double x) {
  // Adding 1.5 * 2^52 leaves the nearest integer in the low bits of the sum.
  double shifted = x + 0x1.8p52;
  double fraction = x - (shifted - 0x1.8p52);
  double t = fraction * 0.693147180559945309417;
  double p = 1.0 / 479001600;
  p = p * t + 1.0 / 39916800;
  p = p * t + 1.0 / 3628800;
  p = p * t + 1.0 / 362880;
  p = p * t + 1.0 / 40320;
  p = p * t + 1.0 / 5040;
  p = p * t + 1.0 / 720;
  p = p * t + 1.0 / 120;
  p = p * t + 1.0 / 24;
  p = p * t + 1.0 / 6;
  p = p * t + 1.0 / 2;
  p = p * t + 1;
  p = p * t + 1;
  uint64_t scale = std::bit_cast<uint64_t>(shifted) << 52;
  return std::bit_cast<double>(std::bit_cast<uint64_t>(p) + scale);
}

/// 2^x of an f32; NaN for NaN.
inline float exp2_f32(float x) {
  // Beyond these the result is 0 or infinity whatever x is.
  float bounded = x < -200.0f ? -200.0f : x;
  bounded = bounded > 200.0f ? 200.0f : bounded;
  float result = static_cast<float>(exp2_double(bounded));
  return x != x ? x : result;
}

/// log2(x) of an f32, with the specials of lg2: NaN below 0, -infinity at 0.
inline float log2_f32(float x) {
  uint64_t bits = std::bit_cast<uint64_t>(static_cast<double>(x));
  // Moves the exponent's step from 1 to sqrt(1/2), so that numbers near 1 have exponent 0.
  constexpr uint64_t kRootHalf = 0x3fe6a09e667f3bcd;
  uint64_t offset = bits - kRootHalf;
  auto exponent = static_cast<int32_t>(static_cast<uint32_t>(offset >> 32)) >> 20;
  double m = std::bit_cast<double>(bits - (offset & 0xfff0000000000000));
  double s = (m - 1) / (m + 1);
  double z = s * s;
  double p = 1.0 / 23;
  p = p * z + 1.0 / 21;
  p = p * z + 1.0 / 19;
  p = p * z + 1.0 / 17;
  p = p * z + 1.0 / 15;
  p = p * z + 1.0 / 13;
  p = p * z + 1.0 / 11;
  p = p * z + 1.0 / 9;
  p = p * z + 1.0 / 7;
  p = p * z + 1.0 / 5;
  p = p * z + 1.0 / 3;
  p = p * z + 1;
  constexpr double kTwoOverLn2 = 2.88539008177792681472;
  float result = static_cast<float>(exponent + s * p * kTwoOverLn2);
  result = x == 0 ? -std::numeric_limits<float>::infinity() : result;
  result = x < 0 ? std::numeric_limits<float>::quiet_NaN() : result;
  return x == std::numeric_limits<float>::infinity() || x != x ? x : result;
}

/// tanh of an f32: (e^2x - 1) / (e^2x + 1), or x itself where that would cancel.
inline float tanh_f32(float x) {
  constexpr double kTwoOverLn2 = 2.88539008177792681472;
  float bounded = x < -20.0f ? -20.0f : x;
  bounded = bounded > 20.0f ? 20.0f : bounded;
  double e = exp2_double(bounded * kTwoOverLn2);
  float result = static_cast<float>((e - 1) / (e + 1));
  return std::fabs(x) < 0x1p-13f || x != x ? x : result;
}

}  // namespace cb::sim
