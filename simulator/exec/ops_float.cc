// add, sub, mul, fma, mad, neg, abs, min, max and copysign on .f32 and .f64.

#include <cmath>

#include "simulator/exec/alu_query.h"
#include "simulator/exec/directed.h"
#include "simulator/exec/float_rules.h"
#include "simulator/exec/lane_ops.h"

namespace cb::sim {
namespace {

using ptx::Type;
using Class = AluSpec::Class;

struct RawAdd {
  template <typename T>
  static T raw(T a, T b, T) {
    return a + b;
  }
};
struct RawSub {
  template <typename T>
  static T raw(T a, T b, T) {
    return a - b;
  }
};
struct RawMul {
  template <typename T>
  static T raw(T a, T b, T) {
    return a * b;
  }
};
struct RawFma {
  template <typename T>
  static T raw(T a, T b, T c) {
    return std::fma(a, b, c);
  }
};

/// A raw operation rounded to nearest, with the rules of f32.
template <typename Raw, bool ftz, bool sat>
struct F32 {
  float apply(float a, float b) const {
    return finish_f32<ftz, sat>(Raw::raw(operand_f32<ftz>(a), operand_f32<ftz>(b), 0.0f));
  }
  float apply(float a, float b, float c) const {
    return finish_f32<ftz, sat>(
        Raw::raw(operand_f32<ftz>(a), operand_f32<ftz>(b), operand_f32<ftz>(c)));
  }
};

template <typename Raw>
struct F64 {
  double apply(double a, double b) const { return propagate_nan(Raw::raw(a, b, 0.0), a, b); }
  double apply(double a, double b, double c) const {
    return propagate_nan(Raw::raw(a, b, c), a, b, c);
  }
};

template <bool ftz, bool negate>
struct Sign32 {
  float apply(float a) const {
    uint32_t bits = std::bit_cast<uint32_t>(a);
    bits = negate ? bits ^ 0x80000000 : bits & 0x7fffffff;
    return finish_f32<ftz, false>(std::bit_cast<float>(bits));
  }
};

template <bool negate>
struct Sign64 {
  double apply(double a) const {
    double value = negate ? -a : std::fabs(a);
    return propagate_nan(value, value);
  }
};

template <typename T>
struct Copysign {
  static constexpr T kSign = static_cast<T>(T{1} << (8 * sizeof(T) - 1));
  T apply(T a, T b) const { return (a & kSign) | (b & ~kSign); }
};

/// The smaller or larger of two numbers, where -0 < +0; the other one if one is NaN.
template <typename T, bool is_max>
T number_of(T a, T b) {
  using Bits = BitsOf<T>;
  bool a_negative = (std::bit_cast<Bits>(a) >> (8 * sizeof(T) - 1)) != 0;
  bool a_less = a < b || (a == b && a_negative);
  T value = a_less == is_max ? b : a;
  value = a != a ? b : value;
  return b != b ? a : value;
}

template <bool is_max, bool ftz, bool nan, bool xorsign>
struct MinMax32 {
  float apply(float a, float b) const {
    uint32_t sign = (std::bit_cast<uint32_t>(a) ^ std::bit_cast<uint32_t>(b)) & 0x80000000;
    a = operand_f32<ftz>(a);
    b = operand_f32<ftz>(b);
    if constexpr (xorsign) {
      a = std::fabs(a);
      b = std::fabs(b);
    }
    float value = number_of<float, is_max>(a, b);
    if constexpr (nan) value = a != a || b != b ? canonical_nan32() : value;
    if constexpr (xorsign) value = std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
    return value != value ? canonical_nan32() : value;
  }
};

template <bool is_max>
struct MinMax64 {
  double apply(double a, double b) const {
    return propagate_nan(number_of<double, is_max>(a, b), b, a);
  }
};

template <typename Raw, bool ftz, bool sat, int kSources>
constexpr OpFn kF32Op = kSources == 3 ? lane_op3<F32<Raw, ftz, sat>, float, float, float, float>
                                      : lane_op2<F32<Raw, ftz, sat>, float, float, float>;

template <typename Raw, int kSources>
std::optional<Result<AluSpec>> find_arithmetic(AluQuery& query) {
  Type type = query.last_type();
  if ((type != Type::kF32 && type != Type::kF64) || query.has("bf16") || query.has("f16")) {
    return std::nullopt;
  }
  query.take(ptx::name_of(type));
  std::optional<Rounding> rounding = query.take_rounding();
  if (!rounding && kSources == 3) return query.refuse("a rounding modifier is required");
  AluSpec spec;
  if (type == Type::kF32) {
    bool ftz = query.take("ftz"), sat = query.take("sat");
    if (rounding.value_or(Rounding::kNearest) != Rounding::kNearest) {
      spec.fn = directed_op<Raw, float, kSources>;
      spec.aux = directed_aux(*rounding, ftz, sat);
    } else if (ftz) {
      spec.fn = sat ? kF32Op<Raw, true, true, kSources> : kF32Op<Raw, true, false, kSources>;
    } else {
      spec.fn = sat ? kF32Op<Raw, false, true, kSources> : kF32Op<Raw, false, false, kSources>;
    }
  } else {
    spec.latency_class = Class::kDouble;
    if (rounding.value_or(Rounding::kNearest) != Rounding::kNearest) {
      spec.fn = directed_op<Raw, double, kSources>;
      spec.aux = directed_aux(*rounding, false, false);
    } else {
      spec.fn = kSources == 3 ? lane_op3<F64<Raw>, double, double, double, double>
                              : lane_op2<F64<Raw>, double, double, double>;
    }
  }
  return kSources == 3 ? query.finish(spec, {type, type, type, type})
                       : query.finish(spec, {type, type, type});
}

template <bool negate>
std::optional<Result<AluSpec>> find_sign(AluQuery& query) {
  Type type = query.last_type();
  AluSpec spec;
  if (type == Type::kF32) {
    query.take("f32");
    spec.fn = query.take("ftz") ? lane_op1<Sign32<true, negate>, float, float>
                                : lane_op1<Sign32<false, negate>, float, float>;
  } else if (type == Type::kF64) {
    query.take("f64");
    spec.fn = lane_op1<Sign64<negate>, double, double>;
    spec.latency_class = Class::kDouble;
  } else {
    return std::nullopt;
  }
  return query.finish(spec, {type, type});
}

template <bool is_max, bool ftz>
OpFn min_max_f32(bool nan, bool xorsign) {
  if (nan) {
    return xorsign ? lane_op2<MinMax32<is_max, ftz, true, true>, float, float, float>
                   : lane_op2<MinMax32<is_max, ftz, true, false>, float, float, float>;
  }
  return xorsign ? lane_op2<MinMax32<is_max, ftz, false, true>, float, float, float>
                 : lane_op2<MinMax32<is_max, ftz, false, false>, float, float, float>;
}

template <bool is_max>
std::optional<Result<AluSpec>> find_min_max(AluQuery& query) {
  Type type = query.last_type();
  AluSpec spec;
  if (type == Type::kF32) {
    query.take("f32");
    if (query.instruction().operands.size() == 4) {
      return query.refuse("the form with three sources needs sm_100");
    }
    bool ftz = query.take("ftz"), nan = query.take("NaN");
    bool xorsign = query.has("xorsign") && query.has("abs");
    if (xorsign) {
      query.take("xorsign");
      query.take("abs");
    }
    spec.fn =
        ftz ? min_max_f32<is_max, true>(nan, xorsign) : min_max_f32<is_max, false>(nan, xorsign);
  } else if (type == Type::kF64) {
    query.take("f64");
    spec.fn = lane_op2<MinMax64<is_max>, double, double, double>;
    spec.latency_class = Class::kDouble;
  } else {
    return std::nullopt;
  }
  return query.finish(spec, {type, type, type});
}

std::optional<Result<AluSpec>> find_copysign(AluQuery& query) {
  Type type = query.take_type();
  AluSpec spec;
  if (type == Type::kF32) spec.fn = lane_op2<Copysign<uint32_t>, uint32_t, uint32_t, uint32_t>;
  if (type == Type::kF64) spec.fn = lane_op2<Copysign<uint64_t>, uint64_t, uint64_t, uint64_t>;
  return query.finish(spec, {type, type, type});
}

constexpr AluEntry kEntries[] = {
    {"add", find_arithmetic<RawAdd, 2>}, {"sub", find_arithmetic<RawSub, 2>},
    {"mul", find_arithmetic<RawMul, 2>}, {"fma", find_arithmetic<RawFma, 3>},
    {"mad", find_arithmetic<RawFma, 3>}, {"neg", find_sign<true>},
    {"abs", find_sign<false>},           {"min", find_min_max<false>},
    {"max", find_min_max<true>},         {"copysign", find_copysign},
};

}  // namespace

std::span<const AluEntry> float_entries() { return kEntries; }

}  // namespace cb::sim
