// Arithmetic on .f16 and .bf16, alone and in pairs, against exact values rounded once by
// float_model.h.

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
using model::Quad;
using model::Value;

struct HalfType {
  const char* name;
  const Layout* layout;
  Fill fill;
};
constexpr HalfType kTypes[] = {{"f16", &model::kHalf, Fill::kF16},
                               {"bf16", &model::kBrain, Fill::kBf16}};

enum class Clamp { kNone, kSat, kRelu };

using NumberModel = std::function<uint64_t(const uint64_t*)>;

/// Applies a model of one 16-bit number to both halves.
LaneModel on_pairs(const NumberModel& number) {
  return returns([=](const uint64_t* in) {
    uint64_t low[3] = {in[0] & 0xffff, in[1] & 0xffff, in[2] & 0xffff};
    uint64_t high[3] = {in[0] >> 16 & 0xffff, in[1] >> 16 & 0xffff, in[2] >> 16 & 0xffff};
    return number(low) | number(high) << 16;
  });
}

/// Checks `opcode.TYPE` and `opcode.TYPEx2`.
void check_both(const std::string& opcode, const HalfType& type, int sources,
                const NumberModel& number, int trials = 48) {
  // Room for the model of a pair to look at three sources whatever there are.
  std::vector<Fill> fills(static_cast<size_t>(sources), type.fill);
  for (bool pairs : {false, true}) {
    std::string text = fmt::format("{}.{}{}", opcode, type.name, pairs ? "x2" : "");
    for (int k = 0; k <= sources; ++k) {
      text += fmt::format("{}{}{}", k == 0 ? " " : ", ", pairs ? "%r" : "%h", k);
    }
    LaneModel padded = [=, lane = pairs ? on_pairs(number) : returns(number)](const uint64_t* in,
                                                                              uint64_t* out) {
      uint64_t three[3] = {};
      std::copy(in, in + sources, three);
      lane(three, out);
    };
    check_alu({text + ";", padded, fills, {}, trials});
  }
}

/// a * b + c, or a sum or product by choice of constants.
enum class Kind { kAdd, kSub, kMul, kFma };

NumberModel arithmetic(Kind kind, const Layout& l, bool ftz, Clamp clamp) {
  return [=, &l](const uint64_t* in) -> uint64_t {
    int sources = kind == Kind::kFma ? 3 : 2;
    Value v[3];
    bool nan = false;
    for (int k = 0; k < sources; ++k) {
      nan |= model::is_nan(in[k], l);
      v[k] = model::value_of(ftz ? model::flushed(in[k], l) : in[k], l);
    }
    Value result;
    if (!nan && (kind == Kind::kMul || kind == Kind::kFma)) {
      bool zero = (!v[0].infinite && v[0].quad == 0) || (!v[1].infinite && v[1].quad == 0);
      result.infinite = v[0].infinite || v[1].infinite;
      result.negative = v[0].negative != v[1].negative;
      result.quad = v[0].quad * v[1].quad;
      nan = result.infinite && zero;
    } else {
      result = v[0];
    }
    if (!nan && kind != Kind::kMul) {
      Value other = v[kind == Kind::kFma ? 2 : 1];
      if (kind == Kind::kSub) {
        other.quad = -other.quad;
        other.negative = !other.negative;
      }
      nan = result.infinite && other.infinite && result.negative != other.negative;
      if (other.infinite && !result.infinite) {
        result = other;
      } else if (!result.infinite) {
        result = model::sum(result.quad, other.quad, result.negative && other.negative);
      }
    }
    if (nan) return clamp == Clamp::kSat ? 0 : l.nan;
    uint64_t bits = model::encode(result, l, Mode::kNearest);
    uint64_t one = static_cast<uint64_t>(l.bias) << l.mantissa;
    if (clamp != Clamp::kNone && model::sign_of(bits, l)) bits = 0;
    if (clamp == Clamp::kSat && bits > one) bits = one;
    return ftz ? model::flushed(bits, l) : bits;
  };
}

TEST(AluHalf, RoundsArithmeticOnce) {
  constexpr std::pair<const char*, Kind> kKinds[] = {
      {"add", Kind::kAdd}, {"sub", Kind::kSub}, {"mul", Kind::kMul}, {"fma", Kind::kFma}};
  for (const auto& [name, kind] : kKinds) {
    int sources = kind == Kind::kFma ? 3 : 2;
    for (const HalfType& type : kTypes) {
      const Layout& l = *type.layout;
      check_both(fmt::format("{}.rn", name), type, sources,
                 arithmetic(kind, l, false, Clamp::kNone), 400);
      if (sources == 2) {
        check_both(name, type, sources, arithmetic(kind, l, false, Clamp::kNone));
      } else {
        check_both("fma.rn.relu", type, 3, arithmetic(kind, l, false, Clamp::kRelu));
      }
    }
    const HalfType& f16 = kTypes[0];
    const Layout& l = model::kHalf;
    check_both(fmt::format("{}.rn.ftz", name), f16, sources,
               arithmetic(kind, l, true, Clamp::kNone), 96);
    check_both(fmt::format("{}.rn.sat", name), f16, sources,
               arithmetic(kind, l, false, Clamp::kSat));
    check_both(fmt::format("{}.rn.ftz.sat", name), f16, sources,
               arithmetic(kind, l, true, Clamp::kSat));
    if (sources == 3) {
      check_both("fma.rn.ftz.relu", f16, 3, arithmetic(kind, l, true, Clamp::kRelu));
    }
  }
}

// The product and sum are 1/2 unit above a number and a little more, which f32 cannot hold:
// rounding to f32 and then to 16 bits would lose the little and round to even.
TEST(AluHalf, DoesNotRoundTwice) {
  struct Example {
    const char* text;
    uint64_t a, b, c;
  };
  constexpr Example kExamples[] = {
      {"fma.rn.bf16 %h0, %h1, %h2, %h3;", 0x3f81, 0x3f80, 0x2f80},  // 1 + 2^-7 + tiny
      {"fma.rn.bf16 %h0, %h1, %h2, %h3;", 0x3b80, 0x3f80, 0x3f80},  // 1 + 2^-8: a tie
      {"fma.rn.bf16 %h0, %h1, %h2, %h3;", 0x3b81, 0x3f80, 0x3f80},  // just above the tie
      {"fma.rn.bf16 %h0, %h1, %h2, %h3;", 0x2f01, 0x3181, 0x3f80},
      {"fma.rn.bf16 %h0, %h1, %h2, %h3;", 0x0080, 0x3f01, 0x0001},
      {"mul.rn.bf16 %h0, %h1, %h2, %h2;", 0x0081, 0x3f01, 0},
      {"fma.rn.f16 %h0, %h1, %h2, %h3;", 0x1001, 0x1001, 0x3c00},
      {"fma.rn.f16 %h0, %h1, %h2, %h3;", 0x0401, 0x2c01, 0x0801},
  };
  for (const Example& example : kExamples) {
    std::string text = example.text;
    bool is_fma = text.starts_with("fma");
    if (!is_fma) text = "mul.rn.bf16 %h0, %h1, %h2;";
    const Layout& l = text.find("bf16") != std::string::npos ? model::kBrain : model::kHalf;
    AluRig rig(text);
    uint64_t in[3] = {example.a, example.b, example.c};
    for (size_t k = 1; k < rig.operands().size(); ++k)
      rig.set_affine(rig.operands()[k].reg, in[k - 1], 0);
    rig.run();
    uint64_t expected = arithmetic(is_fma ? Kind::kFma : Kind::kMul, l, false, Clamp::kNone)(in);
    EXPECT_EQ(rig.get(rig.operands()[0].reg).low[0], expected)
        << text << fmt::format(" {:#x} {:#x} {:#x}", in[0], in[1], in[2]);
  }
}

TEST(AluHalf, ChangesSigns) {
  for (const HalfType& type : kTypes) {
    const Layout& l = *type.layout;
    for (bool negate : {false, true}) {
      for (bool ftz : {false, true}) {
        if (ftz && type.fill == Fill::kBf16) continue;
        check_both(fmt::format("{}{}", negate ? "neg" : "abs", ftz ? ".ftz" : ""), type, 1,
                   [=, &l](const uint64_t* in) -> uint64_t {
                     if (model::is_nan(in[0], l)) return l.nan;
                     uint64_t value = negate ? in[0] ^ 0x8000 : in[0] % 0x8000;
                     return ftz ? model::flushed(value, l) : value;
                   });
      }
    }
  }
}

TEST(AluHalf, FindsExtremes) {
  for (const HalfType& type : kTypes) {
    const Layout& l = *type.layout;
    for (int flags = 0; flags < 16; ++flags) {
      bool is_max = flags & 1, ftz = flags & 2, nan = flags & 4, xorsign = flags & 8;
      if (ftz && type.fill == Fill::kBf16) continue;
      NumberModel number = [=, &l](const uint64_t* in) -> uint64_t {
        uint64_t v[2] = {in[0], in[1]};
        for (uint64_t& value : v) {
          if (ftz) value = model::flushed(value, l);
          if (xorsign) value %= 0x8000;
        }
        bool nan_a = model::is_nan(v[0], l), nan_b = model::is_nan(v[1], l);
        if ((nan_a && nan_b) || (nan && (nan_a || nan_b))) return l.nan;
        // Infinities as numbers that no finite one reaches.
        auto rank = [&](uint64_t bits) {
          Value value = model::value_of(bits, l);
          static const Quad kBeyond = model::power_of_two(200);
          Quad big = value.negative ? -kBeyond : kBeyond;
          return value.infinite ? big : value.quad;
        };
        Quad x = rank(v[0]), y = rank(v[1]);
        bool a_first = x < y || (x == y && model::sign_of(v[0], l));
        uint64_t result = nan_b || (!nan_a && a_first != is_max) ? v[0] : v[1];
        return xorsign ? result | ((in[0] ^ in[1]) & 0x8000) : result;
      };
      check_both(fmt::format("{}{}{}{}", is_max ? "max" : "min", ftz ? ".ftz" : "",
                             nan ? ".NaN" : "", xorsign ? ".xorsign.abs" : ""),
                 type, 2, number, 96);
    }
  }
}

/// Accepts the two 16-bit numbers next to a function computed in long double, or bits of error.
void check_function(const std::string& opcode, const HalfType& type,
                    long double (*function)(long double), bool ftz) {
  const Layout& l = *type.layout;
  AluCase test{.text = fmt::format("{}.{} %h0, %h1;", opcode, type.name),
               .model = [](const uint64_t*, uint64_t*) {}};
  test.fills = {type.fill};
  test.trials = 200;
  test.accepts = [=, &l](const uint64_t* in, uint64_t, uint64_t actual) {
    if (model::is_nan(in[0], l)) return actual == l.nan;
    Value operand = model::value_of(ftz ? model::flushed(in[0], l) : in[0], l);
    long double x = operand.infinite ? (operand.negative ? -HUGE_VALL : HUGE_VALL)
                                     : static_cast<long double>(operand.quad);
    long double exact = function(x);
    Value target{.quad = exact, .negative = std::signbit(exact), .infinite = std::isinf(exact)};
    if (target.infinite) target.quad = 0;
    uint64_t expected = model::encode(target, l, Mode::kNearest);
    if (ftz) expected = model::flushed(expected, l);
    return actual == expected || actual + 1 == expected || actual == expected + 1;
  };
  check_alu(test);
  test.text = fmt::format("{}.{}x2 %r0, %r1;", opcode, type.name);
  auto half = test.accepts;
  test.accepts = [=](const uint64_t* in, uint64_t, uint64_t actual) {
    uint64_t low = in[0] & 0xffff, high = in[0] >> 16;
    return half(&low, 0, actual & 0xffff) && half(&high, 0, actual >> 16);
  };
  check_alu(test);
}

TEST(AluHalf, ApproximatesFunctions) {
  auto exp2 = [](long double x) { return std::exp2(x); };
  auto tanh = [](long double x) { return std::tanh(x); };
  check_function("ex2.approx", kTypes[0], exp2, false);
  check_function("ex2.approx.ftz", kTypes[1], exp2, true);
  for (const HalfType& type : kTypes) check_function("tanh.approx", type, tanh, false);
}

}  // namespace
}  // namespace cb::sim
