#pragma once

// Numbers of any binary format, exactly, and their one rounding to another format or to an integer.
// Integer arithmetic only, one number at a time: this serves the conversions and the cases for
// which there is no vector code.

#include <cstdint>

namespace cb::sim {

enum class Rounding : uint8_t { kNearest, kZero, kDown, kUp, kNearestAway };

/// A binary floating-point format of up to 64 bits: sign, exponent, mantissa.
struct NumberFormat {
  int exponent_bits;
  int mantissa_bits;       ///< stored ones
  bool has_infinity;       ///< else the highest pattern is NaN and the rest are numbers
  uint64_t canonical_nan;  ///< what NaN results are in this format

  constexpr int bits() const { return 1 + exponent_bits + mantissa_bits; }
  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr uint64_t infinity() const {
    return ((uint64_t{1} << exponent_bits) - 1) << mantissa_bits;
  }
  constexpr uint64_t max_finite() const {
    return has_infinity ? infinity() - 1 : (uint64_t{1} << (bits() - 1)) - 2;
  }
  constexpr uint64_t sign_bit() const { return uint64_t{1} << (bits() - 1); }
};

inline constexpr NumberFormat kF64Format{11, 52, true, 0x7ff8000000000000};
inline constexpr NumberFormat kF32Format{8, 23, true, 0x7fffffff};
inline constexpr NumberFormat kTf32Format{8, 10, true, 0x3ffff};
inline constexpr NumberFormat kF16Format{5, 10, true, 0x7fff};
inline constexpr NumberFormat kBf16Format{8, 7, true, 0x7fff};
inline constexpr NumberFormat kE5m2Format{5, 2, true, 0x7f};
inline constexpr NumberFormat kE4m3Format{4, 3, false, 0x7f};

/// mantissa * 2^exponent, plus something less than 2^exponent if `sticky`.
struct Number {
  enum class Kind : uint8_t { kFinite, kInfinite, kNan };
  Kind kind = Kind::kFinite;
  bool negative = false;
  bool sticky = false;
  int exponent = 0;
  uint64_t mantissa = 0;

  static Number of_unsigned(uint64_t value) { return {.mantissa = value}; }
  static Number of_signed(int64_t value);
  static Number of_bits(uint64_t bits, const NumberFormat& format);
};

/// The number in `format`. Overflow gives infinity or the largest number as the rounding says, or
/// always the largest number if `finite`.
uint64_t round_to_format(const Number& number, const NumberFormat& format, Rounding rounding,
                         bool finite = false);

/// sum + error, where `error` is smaller than half a unit in the last place of `sum`.
uint64_t round_double(double sum, double error, const NumberFormat& format, Rounding rounding);

/// The finite number rounded to an integer as floating-point instructions do, then clamped to
/// `bits` bits, signed or not. The result is the integer's pattern, sign-extended to 64 bits.
uint64_t round_to_integer(const Number& number, Rounding rounding, int bits, bool is_signed);

}  // namespace cb::sim
