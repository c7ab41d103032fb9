// div, rcp, sqrt, rsqrt, and the approximate functions ex2, lg2, sin, cos and tanh of .f32. Where
// PTX allows an error, the result is the correctly rounded one or within a hair of it.

#include <cmath>
#include <limits>

#include "simulator/exec/alu_query.h"
#include "simulator/exec/directed.h"
#include "simulator/exec/elementary.h"
#include "simulator/exec/float_rules.h"
#include "simulator/exec/lane_ops.h"

namespace cb::sim {
namespace {

using ptx::Type;
using Class = AluSpec::Class;

struct RawDiv {
  template <typename T>
  static T raw(T a, T b, T) {
    return a / b;
  }
};
struct RawRcp {
  template <typename T>
  static T raw(T a, T, T) {
    return T{1} / a;
  }
};
struct RawSqrt {
  template <typename T>
  static T raw(T a, T, T) {
    return std::sqrt(a);
  }
};

template <bool ftz>
struct Div32 {
  float apply(float a, float b) const {
    return finish_f32<ftz, false>(operand_f32<ftz>(a) / operand_f32<ftz>(b));
  }
};

/// a * (1/b), whose reciprocal is flushed where |b| is above 2^126.
template <bool ftz>
struct DivApprox {
  float apply(float a, float b) const {
    a = operand_f32<ftz>(a);
    b = operand_f32<ftz>(b);
    float magnitude = std::fabs(b);
    bool large = magnitude > 0x1p126f && magnitude < std::numeric_limits<float>::infinity();
    float value = large ? a * std::copysign(0.0f, b) : a / b;
    return finish_f32<ftz, false>(value);
  }
};

/// A function of one f32 that has its own rules for special values.
template <float (*function)(float), bool ftz>
struct Function32 {
  float apply(float a) const { return finish_f32<ftz, false>(function(operand_f32<ftz>(a))); }
};

/// The same where the function is a call: only active lanes are computed.
template <float (*function)(float), bool ftz>
struct SlowFunction32 : Function32<function, ftz> {
  static constexpr bool kPerLane = true;
};

float rcp_f32(float a) { return 1.0f / a; }
float sqrt_f32(float a) { return std::sqrt(a); }
float rsqrt_f32(float a) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(a))); }
float sin_f32(float a) { return static_cast<float>(std::sin(static_cast<double>(a))); }
float cos_f32(float a) { return static_cast<float>(std::cos(static_cast<double>(a))); }

struct Div64 {
  double apply(double a, double b) const { return propagate_nan(a / b, a, b); }
};
template <typename Raw>
struct Unary64 {
  double apply(double a) const { return propagate_nan(Raw::raw(a, a, a), a); }
};
struct Rsqrt64 {
  double apply(double a) const { return propagate_nan(1.0 / std::sqrt(a), a); }
};

/// The instructions that look at the upper word of an f64 only, and give an upper word: the first
/// step of divisions in software. The next word up or down is as good an approximation.
template <typename Raw>
struct UpperWord {
  double apply(double a) const {
    uint64_t bits = std::bit_cast<uint64_t>(a) & 0xffffffff00000000;
    uint64_t exponent = bits & 0x7ff0000000000000;
    double operand = std::bit_cast<double>(exponent == 0 ? bits & 0x8000000000000000 : bits);
    double value = Raw::raw(operand, operand, operand);
    uint64_t result = (std::bit_cast<uint64_t>(value) + 0x80000000) & 0xffffffff00000000;
    if ((result & 0x7ff0000000000000) == 0) result &= 0x8000000000000000;
    return std::bit_cast<double>(value != value ? 0x7fffffff00000000 : result);
  }
};
struct RawRsqrt {
  static double raw(double a, double, double) { return 1.0 / std::sqrt(a); }
};

template <typename Raw, typename T, int kSources>
OpFn directed(AluSpec& spec, Rounding rounding, bool ftz) {
  spec.aux = directed_aux(rounding, ftz, false);
  return directed_op<Raw, T, kSources>;
}

std::optional<Result<AluSpec>> find_div(AluQuery& query) {
  Type type = query.last_type();
  if (type != Type::kF32 && type != Type::kF64) return std::nullopt;
  query.take(ptx::name_of(type));
  AluSpec spec;
  spec.latency_class = Class::kSpecialFunction;
  if (type == Type::kF32) {
    bool ftz = query.take("ftz");
    std::optional<Rounding> rounding = query.take_rounding();
    if (rounding && *rounding != Rounding::kNearest) {
      spec.fn = directed<RawDiv, float, 2>(spec, *rounding, ftz);
    } else if (rounding || query.take("full")) {
      spec.fn = ftz ? lane_op2<Div32<true>, float, float, float>
                    : lane_op2<Div32<false>, float, float, float>;
    } else if (query.take("approx")) {
      spec.fn = ftz ? lane_op2<DivApprox<true>, float, float, float>
                    : lane_op2<DivApprox<false>, float, float, float>;
    }
  } else if (std::optional<Rounding> rounding = query.take_rounding()) {
    spec.fn = *rounding == Rounding::kNearest ? lane_op2<Div64, double, double, double>
                                              : directed<RawDiv, double, 2>(spec, *rounding, false);
  }
  return query.finish(spec, {type, type, type});
}

template <float (*function)(float)>
OpFn function_op(bool ftz) {
  return ftz ? lane_op1<Function32<function, true>, float, float>
             : lane_op1<Function32<function, false>, float, float>;
}

/// rcp and sqrt: rounded as told, or .approx.
template <typename Raw, float (*function)(float)>
std::optional<Result<AluSpec>> find_root(AluQuery& query) {
  Type type = query.last_type();
  query.take(ptx::name_of(type));
  AluSpec spec;
  spec.latency_class = Class::kSpecialFunction;
  bool ftz = query.take("ftz");
  std::optional<Rounding> rounding = query.take_rounding();
  bool nearest = rounding == Rounding::kNearest;
  if (type == Type::kF32 && rounding && !nearest) {
    spec.fn = directed<Raw, float, 1>(spec, *rounding, ftz);
  } else if (type == Type::kF32 && (rounding || query.take("approx"))) {
    spec.fn = function_op<function>(ftz);
  } else if (type == Type::kF64 && rounding && !ftz) {
    spec.fn = nearest ? lane_op1<Unary64<Raw>, double, double>
                      : directed<Raw, double, 1>(spec, *rounding, false);
  } else if (type == Type::kF64 && ftz && query.opcode() == "rcp" && query.take("approx")) {
    spec.fn = lane_op1<UpperWord<RawRcp>, double, double>;
  }
  return query.finish(spec, {type, type});
}

std::optional<Result<AluSpec>> find_rsqrt(AluQuery& query) {
  Type type = query.last_type();
  query.take(ptx::name_of(type));
  AluSpec spec;
  spec.latency_class = Class::kSpecialFunction;
  bool ftz = query.take("ftz");
  if (query.take("approx")) {
    if (type == Type::kF32) spec.fn = function_op<rsqrt_f32>(ftz);
    if (type == Type::kF64) {
      spec.fn =
          ftz ? lane_op1<UpperWord<RawRsqrt>, double, double> : lane_op1<Rsqrt64, double, double>;
    }
  }
  return query.finish(spec, {type, type});
}

/// The functions that exist as .approx of .f32 (half types are another family).
std::optional<Result<AluSpec>> find_function(AluQuery& query) {
  if (query.last_type() != Type::kF32) return std::nullopt;
  std::string_view opcode = query.opcode();
  query.take("f32");
  bool ftz = opcode != "tanh" && query.take("ftz");
  AluSpec spec;
  spec.latency_class = Class::kSpecialFunction;
  if (query.take("approx")) {
    if (opcode == "ex2") spec.fn = function_op<exp2_f32>(ftz);
    if (opcode == "lg2") spec.fn = function_op<log2_f32>(ftz);
    if (opcode == "tanh") spec.fn = function_op<tanh_f32>(false);
    if (opcode == "sin") {
      spec.fn = ftz ? lane_op1<SlowFunction32<sin_f32, true>, float, float>
                    : lane_op1<SlowFunction32<sin_f32, false>, float, float>;
    }
    if (opcode == "cos") {
      spec.fn = ftz ? lane_op1<SlowFunction32<cos_f32, true>, float, float>
                    : lane_op1<SlowFunction32<cos_f32, false>, float, float>;
    }
  }
  return query.finish(spec, {Type::kF32, Type::kF32});
}

constexpr AluEntry kEntries[] = {
    {"div", find_div},
    {"rcp", find_root<RawRcp, rcp_f32>},
    {"sqrt", find_root<RawSqrt, sqrt_f32>},
    {"rsqrt", find_rsqrt},
    {"ex2", find_function},
    {"lg2", find_function},
    {"sin", find_function},
    {"cos", find_function},
    {"tanh", find_function},
};

}  // namespace

std::span<const AluEntry> float_function_entries() { return kEntries; }

}  // namespace cb::sim
