// Arithmetic on .f32 and .f64, against exact values rounded once by float_model.h; approximate
// functions, against long double within their bounds.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "simulator/exec/alu_check.h"
#include "simulator/exec/float_model.h"

namespace cb::sim {
namespace {

using model::Layout;
using model::Mode;
using model::Value;

constexpr std::pair<const char*, Mode> kModes[] = {
    {"rn", Mode::kNearest}, {"rz", Mode::kZero}, {"rm", Mode::kDown}, {"rp", Mode::kUp}};

/// The rules that the text of an instruction adds.
struct Rules {
  const Layout* layout;
  Mode mode = Mode::kNearest;
  bool ftz = false;
  bool sat = false;
};

/// NaN of an operation: canonical for f32; of f64 the first NaN operand, quiet, if there is one.
uint64_t nan_result(const uint64_t* in, int sources, const Rules& rules) {
  if (rules.layout == &model::kDouble) {
    for (int k = 0; k < sources; ++k) {
      if (model::is_nan(in[k], *rules.layout)) return in[k] | uint64_t{1} << 51;
    }
  }
  return rules.sat ? 0 : rules.layout->nan;
}

uint64_t finished(uint64_t bits, const Rules& rules) {
  const Layout& l = *rules.layout;
  if (rules.sat) {
    uint64_t one = static_cast<uint64_t>(l.bias) << l.mantissa;
    if (model::sign_of(bits, l)) return 0;
    bits = bits > one ? one : bits;
  }
  return rules.ftz ? model::flushed(bits, l) : bits;
}

/// The exact value of an operation; `invalid` is set where it has none.
using Exact = Value (*)(const Value* v, bool& invalid, Mode mode);

Value exact_sum(const Value& a, const Value& b, bool& invalid, Mode mode) {
  if (a.infinite && b.infinite) invalid = a.negative != b.negative;
  if (a.infinite) return a;
  if (b.infinite) return b;
  // A zero sum is negative if both terms are, or if the rounding is down and they differ.
  bool both = a.negative && b.negative, either = a.negative || b.negative;
  return model::sum(a.quad, b.quad, both || (either && mode == Mode::kDown));
}
Value negated(Value v) {
  v.quad = -v.quad;
  v.negative = !v.negative;
  return v;
}
Value exact_product(const Value& a, const Value& b, bool& invalid) {
  Value v{.quad = a.quad * b.quad};
  v.negative = a.negative != b.negative;
  v.infinite = a.infinite || b.infinite;
  bool zero = (a.quad == 0 && !a.infinite) || (b.quad == 0 && !b.infinite);
  invalid = v.infinite && zero;
  return v;
}

Value add(const Value* v, bool& invalid, Mode mode) { return exact_sum(v[0], v[1], invalid, mode); }
Value sub(const Value* v, bool& invalid, Mode mode) {
  return exact_sum(v[0], negated(v[1]), invalid, mode);
}
Value mul(const Value* v, bool& invalid, Mode) { return exact_product(v[0], v[1], invalid); }
Value fma(const Value* v, bool& invalid, Mode mode) {
  Value product = exact_product(v[0], v[1], invalid);
  return invalid ? product : exact_sum(product, v[2], invalid, mode);
}
Value div(const Value* v, bool& invalid, Mode) {
  const Value &a = v[0], &b = v[1];
  Value result{.negative = a.negative != b.negative};
  bool b_zero = b.quad == 0 && !b.infinite;
  invalid = (a.infinite && b.infinite) || (b_zero && a.quad == 0 && !a.infinite);
  result.infinite = a.infinite || b_zero;
  return result.infinite || b.infinite ? result : model::quotient(a, b);
}
Value rcp(const Value* v, bool& invalid, Mode mode) {
  Value operands[2] = {{.quad = 1}, v[0]};
  return div(operands, invalid, mode);
}
Value sqrt(const Value* v, bool& invalid, Mode) {
  bool zero = v->quad == 0 && !v->infinite;
  invalid = v->negative && !zero;
  return v->infinite || zero || invalid ? *v : model::square_root(*v);
}

LaneModel arithmetic(Exact exact, int sources, Rules rules) {
  return returns([=](const uint64_t* in) {
    Value values[3];
    for (int k = 0; k < sources; ++k) {
      if (model::is_nan(in[k], *rules.layout)) return nan_result(in, sources, rules);
      uint64_t bits = rules.ftz ? model::flushed(in[k], *rules.layout) : in[k];
      values[k] = model::value_of(bits, *rules.layout);
    }
    bool invalid = false;
    Value value = exact(values, invalid, rules.mode);
    if (invalid) return nan_result(in, sources, rules);
    return finished(model::encode(value, *rules.layout, rules.mode), rules);
  });
}

struct Operation {
  const char* name;
  int sources;
  Exact exact;
  bool can_saturate;
};
constexpr Operation kOperations[] = {{"add", 2, add, true},  {"sub", 2, sub, true},
                                     {"mul", 2, mul, true},  {"fma", 3, fma, true},
                                     {"mad", 3, fma, true},  {"div", 2, div, false},
                                     {"rcp", 1, rcp, false}, {"sqrt", 1, sqrt, false}};

std::string registers(const char* reg, int sources) {
  std::string text = fmt::format("{}0", reg);
  for (int k = 1; k <= sources; ++k) text += fmt::format(", {}{}", reg, k);
  return text;
}

TEST(AluFloat, RoundsSingleArithmeticOnce) {
  for (const Operation& operation : kOperations) {
    for (const auto& [name, mode] : kModes) {
      for (bool ftz : {false, true}) {
        for (bool sat : {false, true}) {
          if (sat && !operation.can_saturate) continue;
          std::string text =
              fmt::format("{}.{}{}{}.f32 {};", operation.name, name, ftz ? ".ftz" : "",
                          sat ? ".sat" : "", registers("%f", operation.sources));
          Rules rules{&model::kSingle, mode, ftz, sat};
          check_alu({text, arithmetic(operation.exact, operation.sources, rules)});
        }
      }
    }
  }
}

TEST(AluFloat, RoundsDoubleArithmeticOnce) {
  for (const Operation& operation : kOperations) {
    for (const auto& [name, mode] : kModes) {
      std::string text =
          fmt::format("{}.{}.f64 {};", operation.name, name, registers("%fd", operation.sources));
      check_alu({text, arithmetic(operation.exact, operation.sources, {&model::kDouble, mode})});
    }
  }
}

TEST(AluFloat, RoundsToNearestByDefault) {
  for (const Operation& operation : {kOperations[0], kOperations[1], kOperations[2]}) {
    check_alu({fmt::format("{}.f32 %f0, %f1, %f2;", operation.name),
               arithmetic(operation.exact, 2, {&model::kSingle})});
    check_alu({fmt::format("{}.f64 %fd0, %fd1, %fd2;", operation.name),
               arithmetic(operation.exact, 2, {&model::kDouble})});
  }
  check_alu({"add.ftz.sat.f32 %f0, %f1, 0f3F000000;",
             arithmetic(add, 2, {&model::kSingle, Mode::kNearest, true, true})});
  check_alu({"mul.f64 %fd0, %fd1, 0d4008000000000000;", arithmetic(mul, 2, {&model::kDouble})});
}

TEST(AluFloat, DividesInFullAsIfRounded) {
  for (bool ftz : {false, true}) {
    const char* suffix = ftz ? ".ftz" : "";
    Rules rules{&model::kSingle, Mode::kNearest, ftz};
    check_alu({fmt::format("div.full{}.f32 %f0, %f1, %f2;", suffix), arithmetic(div, 2, rules)});
    check_alu({fmt::format("rcp.approx{}.f32 %f0, %f1;", suffix), arithmetic(rcp, 1, rules)});
    check_alu({fmt::format("sqrt.approx{}.f32 %f0, %f1;", suffix), arithmetic(sqrt, 1, rules)});
    LaneModel exact = arithmetic(div, 2, rules);
    check_alu({fmt::format("div.approx{}.f32 %f0, %f1, %f2;", suffix),
               [=](const uint64_t* in, uint64_t* out) {
                 exact(in, out);
                 uint64_t b = in[1] & 0x7fffffff, a = in[0] & 0x7fffffff;
                 bool large = b > 0x7e800000 && b < 0x7f800000;
                 if (!large || a > 0x7f800000) return;
                 out[0] = a == 0x7f800000 ? model::kSingle.nan : (in[0] ^ in[1]) & 0x80000000;
               },
               {},
               {},
               200});
  }
}

TEST(AluFloat, ChangesSigns) {
  auto sign = [](const Layout& l, bool negate, bool ftz) {
    return returns([=, &l](const uint64_t* in) {
      uint64_t bit = uint64_t{1} << (l.width - 1);
      uint64_t value = negate ? in[0] ^ bit : in[0] & ~bit;
      if (model::is_nan(value, l)) return l.width == 64 ? value | uint64_t{1} << 51 : l.nan;
      return ftz ? model::flushed(value, l) : value;
    });
  };
  for (bool ftz : {false, true}) {
    const char* suffix = ftz ? ".ftz" : "";
    check_alu({fmt::format("neg{}.f32 %f0, %f1;", suffix), sign(model::kSingle, true, ftz)});
    check_alu({fmt::format("abs{}.f32 %f0, %f1;", suffix), sign(model::kSingle, false, ftz)});
  }
  check_alu({"neg.f64 %fd0, %fd1;", sign(model::kDouble, true, false)});
  check_alu({"abs.f64 %fd0, %fd1;", sign(model::kDouble, false, false)});
  check_alu({"copysign.f32 %f0, %f1, %f2;", returns([](const uint64_t* in) {
               return in[0] / 0x80000000 * 0x80000000 + in[1] % 0x80000000;
             })});
  check_alu({"copysign.f64 %fd0, %fd1, %fd2;",
             returns([](const uint64_t* in) { return (in[0] >> 63 << 63) + (in[1] << 1 >> 1); })});
}

/// The order of patterns that are not NaN, with -0 before +0.
bool before(uint64_t a, uint64_t b, const Layout& l) {
  Value x = model::value_of(a, l), y = model::value_of(b, l);
  if (x.infinite || y.infinite) {
    auto rank = [](const Value& v) { return v.infinite ? (v.negative ? -1 : 1) : 0; };
    return rank(x) < rank(y);
  }
  return x.quad == y.quad ? x.negative && !y.negative : x.quad < y.quad;
}

TEST(AluFloat, FindsExtremes) {
  const Layout& l = model::kSingle;
  for (bool is_max : {false, true}) {
    for (int flags = 0; flags < 8; ++flags) {
      bool ftz = flags & 1, nan = flags & 2, xorsign = flags & 4;
      LaneModel model = returns([=, &l](const uint64_t* in) {
        uint64_t sign = (in[0] ^ in[1]) & 0x80000000;
        uint64_t v[2] = {in[0], in[1]};
        for (uint64_t& value : v) {
          if (ftz) value = model::flushed(value, l);
          if (xorsign) value &= 0x7fffffff;
        }
        bool nan_a = model::is_nan(v[0], l), nan_b = model::is_nan(v[1], l);
        if ((nan_a && nan_b) || (nan && (nan_a || nan_b))) return l.nan;
        bool first = nan_b || (!nan_a && before(v[0], v[1], l) != is_max);
        uint64_t result = first ? v[0] : v[1];
        return xorsign ? result | sign : result;
      });
      check_alu({fmt::format("{}{}{}{}.f32 %f0, %f1, %f2;", is_max ? "max" : "min",
                             ftz ? ".ftz" : "", nan ? ".NaN" : "", xorsign ? ".xorsign.abs" : ""),
                 model,
                 {},
                 {},
                 96});
    }
    const Layout& d = model::kDouble;
    check_alu({fmt::format("{}.f64 %fd0, %fd1, %fd2;", is_max ? "max" : "min"),
               returns([=, &d](const uint64_t* in) {
                 bool nan_a = model::is_nan(in[0], d), nan_b = model::is_nan(in[1], d);
                 if (nan_a && nan_b) return in[1] | uint64_t{1} << 51;
                 bool first = nan_b || (!nan_a && before(in[0], in[1], d) != is_max);
                 return first ? in[0] : in[1];
               }),
               {},
               {},
               96});
  }
}

/// Accepts results near a function computed in long double, and NaN and infinity where it is.
template <typename Function>
AluCase near(const std::string& text, Function function, long double relative, long double absolute,
             bool ftz) {
  AluCase test{.text = text, .model = [](const uint64_t*, uint64_t*) {}};
  test.accepts = [=](const uint64_t* in, uint64_t, uint64_t actual) {
    uint64_t bits = ftz ? model::flushed(in[0], model::kSingle) : in[0];
    long double exact =
        function(static_cast<long double>(std::bit_cast<float>(static_cast<uint32_t>(bits))));
    float result = std::bit_cast<float>(static_cast<uint32_t>(actual));
    if (std::isnan(exact)) return actual == model::kSingle.nan;
    if (std::fabs(exact) >= 0x1.ffffffp127L)
      return std::isinf(result) && (result < 0) == (exact < 0);
    if (ftz && std::fabs(exact) < 0x1p-126L) return result == 0;
    long double error = std::fabs(result - exact);
    return error <= absolute || error <= relative * std::fabs(exact) || error <= 0x1p-149L;
  };
  test.trials = 200;
  return test;
}

TEST(AluFloat, ApproximatesFunctionsWithinTheirBounds) {
  using Real = long double;
  for (bool ftz : {false, true}) {
    const char* f = ftz ? ".ftz" : "";
    check_alu(near(
        fmt::format("ex2.approx{}.f32 %f0, %f1;", f), [](Real x) { return std::exp2(x); }, 0x1p-23L,
        0, ftz));
    check_alu(near(
        fmt::format("lg2.approx{}.f32 %f0, %f1;", f), [](Real x) { return std::log2(x); }, 0x1p-23L,
        0, ftz));
    check_alu(near(
        fmt::format("sin.approx{}.f32 %f0, %f1;", f), [](Real x) { return std::sin(x); }, 0x1p-23L,
        0, ftz));
    check_alu(near(
        fmt::format("cos.approx{}.f32 %f0, %f1;", f), [](Real x) { return std::cos(x); }, 0x1p-23L,
        0, ftz));
    check_alu(near(
        fmt::format("rsqrt.approx{}.f32 %f0, %f1;", f), [](Real x) { return 1 / std::sqrt(x); },
        0x1p-23L, 0, ftz));
  }
  check_alu(near(
      "tanh.approx.f32 %f0, %f1;", [](Real x) { return std::tanh(x); }, 0x1p-23L, 0, false));
}

TEST(AluFloat, IsExactWhereFunctionsAreWholePowers) {
  for (int exponent = -149; exponent < 128; ++exponent) {
    AluRig power("ex2.approx.f32 %f0, %f1;"), logarithm("lg2.approx.f32 %f0, %f1;");
    auto bits = [](float value) { return uint64_t{std::bit_cast<uint32_t>(value)}; };
    float number = static_cast<float>(exponent), result = std::ldexp(1.0f, exponent);
    power.set_affine(power.operands()[1].reg, bits(number), 0);
    power.run();
    EXPECT_EQ(power.get(power.operands()[0].reg).low[0], bits(result));
    logarithm.set_affine(logarithm.operands()[1].reg, bits(result), 0);
    logarithm.run();
    EXPECT_EQ(logarithm.get(logarithm.operands()[0].reg).low[0], bits(number));
  }
}

/// What of an f64 its upper word says: NaN, zero for subnormals, or a number of 20 bits.
AluCase upper_word(const std::string& text, double (*function)(double)) {
  AluCase test{.text = text, .model = [](const uint64_t*, uint64_t*) {}};
  test.accepts = [=](const uint64_t* in, uint64_t, uint64_t actual) {
    double operand = std::bit_cast<double>(in[0] >> 32 << 32);
    if (std::fabs(operand) < 0x1p-1022) operand = std::copysign(0.0, operand);
    double exact = function(operand), result = std::bit_cast<double>(actual);
    if ((actual & 0xffffffff) != 0) return false;
    if (std::isnan(exact)) return actual == 0x7fffffff00000000;
    if (std::isinf(exact)) return result == exact;
    if (std::fabs(exact) < 0x1p-1022) return result == 0;
    return std::fabs(result - exact) <= std::fabs(exact) * 0x1p-20;
  };
  test.trials = 200;
  return test;
}

TEST(AluFloat, ApproximatesUpperWords) {
  check_alu(upper_word("rcp.approx.ftz.f64 %fd0, %fd1;", [](double x) { return 1 / x; }));
  check_alu(
      upper_word("rsqrt.approx.ftz.f64 %fd0, %fd1;", [](double x) { return 1 / std::sqrt(x); }));
  AluCase rsqrt{.text = "rsqrt.approx.f64 %fd0, %fd1;", .model = [](const uint64_t*, uint64_t*) {}};
  rsqrt.accepts = [](const uint64_t* in, uint64_t, uint64_t actual) {
    long double exact = 1 / std::sqrt(static_cast<long double>(std::bit_cast<double>(in[0])));
    double result = std::bit_cast<double>(actual);
    if (std::isnan(exact)) return std::isnan(result);
    return std::isinf(exact) ? result == exact
                             : std::fabs(result - exact) <= std::fabs(exact) * 0x1p-51L;
  };
  check_alu(rsqrt);
}

}  // namespace
}  // namespace cb::sim
