#pragma once

// The comparisons of PTX reduced to primitives, and the primitives on each type.

#include <functional>
#include <optional>
#include <string_view>

#include "simulator/exec/affine.h"
#include "simulator/exec/alu_types.h"
#include "simulator/exec/float_rules.h"

namespace cb::sim {

enum class Primitive : uint8_t {
  kEqual,
  kDifferent,  ///< and neither is NaN
  kLess,
  kLessEqual,
  kNumbers,  ///< neither is NaN
};

/// `a OP b` as a primitive on (a, b), or on (b, a) if `exchange`, complemented if `complement`.
struct Comparison {
  Primitive primitive;
  bool exchange = false;
  bool complement = false;
};

/// nullopt if there is no such comparison for operands of `type`.
inline std::optional<Comparison> find_comparison(std::string_view name, ptx::Type type) {
  using P = Primitive;
  bool integer = is_integer(type) || is_bits(type);
  if (name == "eq") return Comparison{P::kEqual};
  if (name == "ne" && integer) return Comparison{P::kEqual, false, true};
  if (is_bits(type)) return std::nullopt;
  if (is_unsigned(type)) {
    if (name == "lo") name = "lt";
    if (name == "ls") name = "le";
    if (name == "hi") name = "gt";
    if (name == "hs") name = "ge";
  }
  if (name == "lt") return Comparison{P::kLess};
  if (name == "gt") return Comparison{P::kLess, true};
  if (integer) {
    if (name == "le") return Comparison{P::kLess, true, true};
    if (name == "ge") return Comparison{P::kLess, false, true};
    return std::nullopt;
  }
  if (name == "ne") return Comparison{P::kDifferent};
  if (name == "le") return Comparison{P::kLessEqual};
  if (name == "ge") return Comparison{P::kLessEqual, true};
  if (name == "equ") return Comparison{P::kDifferent, false, true};
  if (name == "neu") return Comparison{P::kEqual, false, true};
  if (name == "ltu") return Comparison{P::kLessEqual, true, true};
  if (name == "leu") return Comparison{P::kLess, true, true};
  if (name == "gtu") return Comparison{P::kLessEqual, false, true};
  if (name == "geu") return Comparison{P::kLess, false, true};
  if (name == "num") return Comparison{P::kNumbers};
  if (name == "nan") return Comparison{P::kNumbers, false, true};
  return std::nullopt;
}

/// `affine` sets `all` where every lane compares alike, and returns false where it cannot tell.
template <typename T>
struct IntLess {
  bool apply(T a, T b) const { return a < b; }
  bool affine(const Meta& a, const Meta& b, bool& all) const {
    return affine_order<T>(a, b, std::less<T>{}, all);
  }
};

template <typename T>
struct IntEqual {
  bool apply(T a, T b) const { return a == b; }
  bool affine(const Meta& a, const Meta& b, bool& all) const {
    if (a.base == b.base && a.stride == b.stride) {
      all = true;
      return true;
    }
    // Sequences that are not the same have no lane in common if one is below the other throughout.
    all = false;
    bool less, greater;
    return affine_order<T>(a, b, std::less<T>{}, less) &&
           affine_order<T>(b, a, std::less<T>{}, greater);
  }
};

template <typename T, Primitive primitive, bool ftz>
struct FloatCompare {
  bool apply(T a, T b) const {
    if constexpr (ftz) {
      a = flush(a);
      b = flush(b);
    }
    switch (primitive) {
      case Primitive::kEqual:
        return a == b;
      case Primitive::kDifferent:
        return a < b || a > b;
      case Primitive::kLess:
        return a < b;
      case Primitive::kLessEqual:
        return a <= b;
      case Primitive::kNumbers:
        return a == a && b == b;
    }
  }
};

/// 16-bit floats, of the format whose infinity is given, by their patterns.
template <uint16_t infinity, Primitive primitive, bool ftz>
struct HalfCompare {
  /// Numbers in order as integers; both zeros are 0.
  static int order(uint16_t bits) {
    int magnitude = bits & 0x7fff;
    if (ftz && magnitude < 0x0400) magnitude = 0;
    return (bits & 0x8000) != 0 ? -magnitude : magnitude;
  }
  bool apply(uint16_t a, uint16_t b) const {
    bool numbers = (a & 0x7fff) <= infinity && (b & 0x7fff) <= infinity;
    int x = order(a), y = order(b);
    switch (primitive) {
      case Primitive::kEqual:
        return numbers && x == y;
      case Primitive::kDifferent:
        return numbers && x != y;
      case Primitive::kLess:
        return numbers && x < y;
      case Primitive::kLessEqual:
        return numbers && x <= y;
      case Primitive::kNumbers:
        return numbers;
    }
  }
};

}  // namespace cb::sim
