#pragma once

// For tests of matrix instructions: numbers decoded one by one, as the formats are defined.

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

namespace cb::sim {

/// sign, exponent, mantissa; the highest exponent stands for infinity and NaN, or for e4m3 only the
/// highest pattern for NaN.
inline double decode_float(uint64_t bits, int exponent_bits, int mantissa_bits, bool is_e4m3) {
  uint64_t mantissa = bits & ((uint64_t{1} << mantissa_bits) - 1);
  uint64_t highest = (uint64_t{1} << exponent_bits) - 1;
  uint64_t exponent = bits >> mantissa_bits & highest;
  double sign = (bits >> (exponent_bits + mantissa_bits) & 1) != 0 ? -1 : 1;
  int bias = (1 << (exponent_bits - 1)) - 1;
  if (is_e4m3 ? (bits & 0x7f) == 0x7f : exponent == highest && mantissa != 0) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == highest && !is_e4m3) return sign * std::numeric_limits<double>::infinity();
  auto fraction = static_cast<double>(mantissa);
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - mantissa_bits);
  return sign * std::ldexp(fraction + std::ldexp(1.0, mantissa_bits),
                           static_cast<int>(exponent) - bias - mantissa_bits);
}

inline double decode_element(const std::string& type, uint64_t bits) {
  if (type == "f16") return decode_float(bits & 0xffff, 5, 10, false);
  if (type == "bf16") return decode_float(bits & 0xffff, 8, 7, false);
  if (type == "tf32") return decode_float(bits & 0xffffe000, 8, 23, false);
  if (type == "f32") return decode_float(bits & 0xffffffff, 8, 23, false);
  if (type == "e4m3") return decode_float(bits & 0xff, 4, 3, true);
  if (type == "e5m2") return decode_float(bits & 0xff, 5, 2, false);
  if (type == "s8") return static_cast<int8_t>(bits);
  if (type == "u8") return static_cast<uint8_t>(bits);
  if (type == "s4") return static_cast<int>((bits & 15) ^ 8) - 8;
  if (type == "u4") return static_cast<double>(bits & 15);
  if (type == "s32") return static_cast<int32_t>(bits);
  return static_cast<double>(bits & 1);
}

inline unsigned element_bits(const std::string& type) {
  if (type == "f16" || type == "bf16") return 16;
  if (type == "tf32" || type == "f32" || type == "s32") return 32;
  if (type == "s4" || type == "u4") return 4;
  return type == "b1" ? 1 : 8;
}

/// A pattern of `type` whose value is a small whole number, so that sums are exact.
inline uint64_t small_number(const std::string& type, uint64_t random) {
  int value = static_cast<int>(random % 5) - 2;
  if (type == "u8" || type == "u4") return random % 5;
  if (type == "s8") return static_cast<uint64_t>(value) & 0xff;
  if (type == "s4") return static_cast<uint64_t>(value) & 0xf;
  if (type == "b1") return random & 1;
  constexpr uint64_t kF16[] = {0xc000, 0xbc00, 0, 0x3c00, 0x4000};
  constexpr uint64_t kBf16[] = {0xc000, 0xbf80, 0, 0x3f80, 0x4000};
  constexpr uint64_t kE4m3[] = {0xc0, 0xb8, 0, 0x38, 0x40};
  if (type == "f16") return kF16[value + 2];
  if (type == "bf16") return kBf16[value + 2];
  if (type == "tf32") return kBf16[value + 2] << 16;
  if (type == "e4m3") return kE4m3[value + 2];
  return kF16[value + 2] >> 8;
}

}  // namespace cb::sim
