#pragma once

// Floating-point arithmetic for tests, independent of the handlers: values are exact in quad
// precision, or a quad number and the sign of what is missing from it, and are rounded by scaling
// and comparing.

#include <cstdint>
#include <cstring>

namespace cb::sim::model {

using Quad = __float128;

struct Layout {
  int width, mantissa, bias;
  uint64_t nan;
  bool infinity = true;
};
inline constexpr Layout kHalf{16, 10, 15, 0x7fff};
inline constexpr Layout kBrain{16, 7, 127, 0x7fff};
inline constexpr Layout kSingle{32, 23, 127, 0x7fffffff};
inline constexpr Layout kDouble{64, 52, 1023, 0xfff8000000000000};
inline constexpr Layout kTensor{19, 10, 127, 0x3ffff};
inline constexpr Layout kE4m3{8, 3, 7, 0x7f, false};
inline constexpr Layout kE5m2{8, 2, 15, 0x7f};

enum class Mode { kNearest, kZero, kDown, kUp, kAway };

/// A value that is not NaN: `quad` plus something of the sign `rest`, too small to be in it.
struct Value {
  Quad quad = 0;
  int rest = 0;
  bool negative = false;  ///< the sign, also of zero
  bool infinite = false;
};

inline Quad power_of_two(int exponent) {
  Quad result = 1, factor = exponent < 0 ? Quad(0.5) : Quad(2);
  for (int n = exponent < 0 ? -exponent : exponent; n != 0; n >>= 1, factor *= factor) {
    if (n & 1) result *= factor;
  }
  return result;
}

inline uint64_t exponent_field(const Layout& l) {
  return (uint64_t{1} << (l.width - 1)) - (uint64_t{1} << l.mantissa);
}
inline bool is_nan(uint64_t bits, const Layout& l) {
  uint64_t magnitude = bits & ((uint64_t{1} << (l.width - 1)) - 1);
  if (!l.infinity) return magnitude == (uint64_t{1} << (l.width - 1)) - 1;
  return magnitude > exponent_field(l);
}
inline bool is_subnormal(uint64_t bits, const Layout& l) {
  uint64_t fraction = bits & ((uint64_t{1} << l.mantissa) - 1);
  return (bits & exponent_field(l)) == 0 && fraction != 0;
}
inline bool sign_of(uint64_t bits, const Layout& l) { return (bits >> (l.width - 1) & 1) != 0; }

/// A subnormal number as the zero of its sign.
inline uint64_t flushed(uint64_t bits, const Layout& l) {
  return is_subnormal(bits, l) ? bits & uint64_t{1} << (l.width - 1) : bits;
}

inline Value value_of(uint64_t bits, const Layout& l) {
  Value v;
  v.negative = sign_of(bits, l);
  v.infinite = l.infinity && (bits & exponent_field(l)) == exponent_field(l);
  if (v.infinite) return v;
  uint64_t fraction = bits & ((uint64_t{1} << l.mantissa) - 1);
  int field = static_cast<int>((bits & exponent_field(l)) >> l.mantissa);
  Quad significand = fraction;
  if (field != 0) significand += power_of_two(l.mantissa);
  v.quad = significand * power_of_two((field == 0 ? 1 : field) - l.bias - l.mantissa);
  if (v.negative) v.quad = -v.quad;
  return v;
}

inline int top_exponent(Quad magnitude) {
  unsigned __int128 bits;
  std::memcpy(&bits, &magnitude, sizeof bits);
  return static_cast<int>(bits >> 112) - 16383;
}

/// The rounded value; `finite`: the largest number instead of infinity.
inline uint64_t encode(const Value& v, const Layout& l, Mode mode, bool finite = false) {
  uint64_t sign = v.negative ? uint64_t{1} << (l.width - 1) : 0;
  uint64_t infinity = l.infinity ? exponent_field(l) : (uint64_t{1} << (l.width - 1)) - 1;
  uint64_t largest = infinity - 1;
  if (v.infinite) return sign | (finite ? largest : infinity);
  if (v.quad == 0) return sign;
  Quad magnitude = v.negative ? -v.quad : v.quad;
  int rest = v.negative ? -v.rest : v.rest;
  int exponent = top_exponent(magnitude);
  if (rest < 0 && magnitude == power_of_two(exponent)) --exponent;
  if (exponent < 1 - l.bias) exponent = 1 - l.bias;
  Quad units = magnitude / power_of_two(exponent - l.mantissa);
  auto whole = static_cast<unsigned __int128>(units);
  Quad fraction = units - static_cast<Quad>(whole);
  // Just below a whole number of units.
  if (fraction == 0 && rest < 0) {
    whole -= 1;
    fraction = 1;
  }
  bool inexact = fraction != 0 || rest != 0;
  bool up = false;
  int side = fraction > Quad(0.5) ? 1 : fraction < Quad(0.5) ? -1 : rest;
  if (fraction == 1) side = 1;
  if (mode == Mode::kNearest) up = side > 0 || (side == 0 && (whole & 1) != 0);
  if (mode == Mode::kAway) up = side >= 0 && inexact;
  if (mode == Mode::kDown) up = inexact && v.negative;
  if (mode == Mode::kUp) up = inexact && !v.negative;
  Quad rounded = static_cast<Quad>(whole + (up ? 1 : 0)) * power_of_two(exponent - l.mantissa);
  // Now exact: find its pattern.
  if (rounded == 0) return sign;
  int top = top_exponent(rounded);
  if (top < 1 - l.bias) {
    return sign | static_cast<uint64_t>(rounded / power_of_two(1 - l.bias - l.mantissa));
  }
  auto significand = static_cast<uint64_t>(rounded / power_of_two(top - l.mantissa));
  uint64_t bits = (static_cast<uint64_t>(top + l.bias) << l.mantissa) +
                  (significand - (uint64_t{1} << l.mantissa));
  if (bits <= largest && top <= 2 * l.bias + 1) return sign | bits;
  bool toward = mode == Mode::kZero || (mode == Mode::kDown && !v.negative) ||
                (mode == Mode::kUp && v.negative);
  return sign | (finite || toward ? largest : infinity);
}

/// -1, 0 or 1.
inline int sign(Quad q) { return q < 0 ? -1 : q > 0 ? 1 : 0; }

/// a + b. The error of a quad sum is itself a quad number (Knuth's two-sum).
inline Value sum(Quad a, Quad b, bool negative_if_zero) {
  Quad s = a + b, t = s - a;
  Quad error = (a - (s - t)) + (b - t);
  Value v{.quad = s, .rest = sign(error)};
  v.negative = s < 0 || (s == 0 && negative_if_zero);
  return v;
}

/// a / b of finite numbers; the error's sign matters only where the quotient has few bits, and
/// then quotient * b is exact.
inline Value quotient(const Value& a, const Value& b) {
  Value v{.quad = a.quad / b.quad};
  v.negative = a.negative != b.negative;
  v.rest = sign(a.quad - v.quad * b.quad) * (b.quad < 0 ? -1 : 1);
  return v;
}

/// The square root of a finite positive number, by Newton's method.
inline Value square_root(const Value& a) {
  if (a.quad == 0) return a;
  int half = top_exponent(a.quad) / 2;
  Quad scaled = a.quad / power_of_two(2 * half), root = 1;
  for (int i = 0; i < 12; ++i) root = (root + scaled / root) / 2;
  // A root with few bits is found exactly or missed by a last place: try the rounded one.
  Quad coarse =
      static_cast<Quad>(static_cast<unsigned __int128>(root * power_of_two(60) + Quad(0.5)));
  coarse /= power_of_two(60);
  if (coarse * coarse == scaled) root = coarse;
  Value v{.quad = root * power_of_two(half)};
  v.rest = sign(scaled - root * root);
  return v;
}

}  // namespace cb::sim::model
