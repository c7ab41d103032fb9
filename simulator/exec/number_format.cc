#include "simulator/exec/number_format.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace cb::sim {
namespace {

/// A mantissa with its top bit in bit 63.
Number normalised(Number n) {
  int shift = std::countl_zero(n.mantissa);
  n.mantissa <<= shift;
  n.exponent -= shift;
  return n;
}

/// What is left of a mantissa when `shift` low bits are dropped, rounded.
uint64_t shift_rounded(const Number& n, int shift, Rounding rounding) {
  uint64_t kept = shift >= 64 ? 0 : n.mantissa >> shift;
  uint64_t dropped = shift >= 64 ? n.mantissa : n.mantissa & ((uint64_t{1} << shift) - 1);
  bool inexact = dropped != 0 || n.sticky;
  bool up = false;
  switch (rounding) {
    case Rounding::kZero:
      return kept;
    case Rounding::kDown:
      up = inexact && n.negative;
      break;
    case Rounding::kUp:
      up = inexact && !n.negative;
      break;
    case Rounding::kNearest:
    case Rounding::kNearestAway: {
      if (shift > 64) break;  // less than half
      uint64_t half = uint64_t{1} << (shift - 1);
      bool tie = dropped == half && !n.sticky;
      up = dropped >= half;
      if (tie && rounding == Rounding::kNearest) up = (kept & 1) != 0;
      break;
    }
  }
  return kept + (up ? 1 : 0);
}

}  // namespace

Number Number::of_signed(int64_t value) {
  uint64_t bits = static_cast<uint64_t>(value);
  return {.negative = value < 0, .mantissa = value < 0 ? -bits : bits};
}

Number Number::of_bits(uint64_t bits, const NumberFormat& format) {
  uint64_t magnitude = bits & (format.sign_bit() - 1);
  Number n;
  n.negative = (bits & format.sign_bit()) != 0;
  if (magnitude > format.max_finite()) {
    bool infinite = format.has_infinity && magnitude == format.infinity();
    n.kind = infinite ? Kind::kInfinite : Kind::kNan;
    return n;
  }
  int field = static_cast<int>(magnitude >> format.mantissa_bits);
  n.mantissa = magnitude & ((uint64_t{1} << format.mantissa_bits) - 1);
  if (field != 0) n.mantissa |= uint64_t{1} << format.mantissa_bits;
  n.exponent = std::max(field, 1) - format.bias() - format.mantissa_bits;
  return n;
}

uint64_t round_to_format(const Number& number, const NumberFormat& format, Rounding rounding,
                         bool finite) {
  if (number.kind == Number::Kind::kNan) return format.canonical_nan;
  uint64_t sign = number.negative ? format.sign_bit() : 0;
  uint64_t largest = sign | format.max_finite();
  if (number.kind == Number::Kind::kInfinite) return finite ? largest : sign | format.infinity();
  if (number.mantissa == 0) return sign;
  Number n = normalised(number);
  int top = n.exponent + 63;
  int min_top = 1 - format.bias();
  int unit = std::max(top, min_top) - format.mantissa_bits;
  uint64_t kept = shift_rounded(n, unit - n.exponent, rounding);
  // A subnormal that rounds up to the smallest normal number, or a mantissa that rounds up to two,
  // carries into the exponent field.
  uint64_t magnitude = kept;
  if (top >= min_top) {
    uint64_t field = static_cast<uint64_t>(top + format.bias());
    magnitude = (field << format.mantissa_bits) + (kept - (uint64_t{1} << format.mantissa_bits));
  }
  if (magnitude <= format.max_finite()) return sign | magnitude;
  bool to_largest = finite || rounding == Rounding::kZero ||
                    (rounding == Rounding::kDown && !number.negative) ||
                    (rounding == Rounding::kUp && number.negative);
  return to_largest ? largest : sign | format.infinity();
}

uint64_t round_double(double sum, double error, const NumberFormat& format, Rounding rounding) {
  Number n = Number::of_bits(std::bit_cast<uint64_t>(sum), kF64Format);
  if (error != 0) {
    // Two bits below the sum's last place hold the error's sign and that there is one.
    n.mantissa <<= 2;
    n.exponent -= 2;
    bool toward_zero = (error < 0) != n.negative;
    if (toward_zero) n.mantissa -= 1;
    n.sticky = true;
  }
  return round_to_format(n, format, rounding);
}

uint64_t round_to_integer(const Number& number, Rounding rounding, int bits, bool is_signed) {
  CB_CHECK(number.kind == Number::Kind::kFinite, "rounding what is not finite to an integer");
  uint64_t magnitude = number.mantissa;
  bool overflow = false;
  if (number.mantissa != 0 && number.exponent > 0) {
    overflow = number.exponent > std::countl_zero(number.mantissa);
    magnitude = overflow ? ~uint64_t{0} : number.mantissa << number.exponent;
  } else if (number.exponent < 0) {
    magnitude = shift_rounded(number, -number.exponent, rounding);
  }
  uint64_t limit = is_signed ? uint64_t{1} << (bits - 1) : 0;
  if (number.negative) return -std::min(magnitude, limit);
  uint64_t max = is_signed ? limit - 1 : ~uint64_t{0} >> (64 - bits);
  return std::min(magnitude, max);
}

}  // namespace cb::sim
