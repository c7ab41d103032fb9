// cvt between all types, with registers of all widths, against quad-precision values that are
// rounded once to the destination.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>

#include "simulator/exec/alu_check.h"
#include "simulator/exec/float_model.h"

namespace cb::sim {
namespace {

using model::Layout;
using model::Mode;
using model::Quad;
using model::Value;

struct Type {
  const char* name;
  int bits;
  bool is_signed = false;
  const Layout* layout = nullptr;  ///< of a float
  Fill fill = Fill::kInteger;
};
constexpr Type kIntegers[] = {{"u8", 8},   {"s8", 8, true},   {"u16", 16}, {"s16", 16, true},
                              {"u32", 32}, {"s32", 32, true}, {"u64", 64}, {"s64", 64, true}};
constexpr Type kFloats[] = {{"f16", 16, false, &model::kHalf, Fill::kF16},
                            {"bf16", 16, false, &model::kBrain, Fill::kBf16},
                            {"f32", 32, false, &model::kSingle, Fill::kF32},
                            {"f64", 64, false, &model::kDouble, Fill::kF64}};

constexpr std::pair<const char*, Mode> kRoundings[] = {
    {"rn", Mode::kNearest}, {"rz", Mode::kZero}, {"rm", Mode::kDown}, {"rp", Mode::kUp}};
constexpr std::pair<const char*, Mode> kIntegerRoundings[] = {
    {"rni", Mode::kNearest}, {"rzi", Mode::kZero}, {"rmi", Mode::kDown}, {"rpi", Mode::kUp}};

const char* register_of(int bits) {
  return bits == 8 ? "%b" : bits == 16 ? "%h" : bits == 32 ? "%r" : "%rd";
}
const char* register_of(const Type& type) {
  if (type.layout == &model::kSingle) return "%f";
  return type.layout == &model::kDouble ? "%fd" : register_of(type.bits);
}

Quad smallest(const Type& t) { return t.is_signed ? -model::power_of_two(t.bits - 1) : Quad(0); }
Quad largest(const Type& t) { return model::power_of_two(t.is_signed ? t.bits - 1 : t.bits) - 1; }

Quad integer_of(uint64_t bits, const Type& t) {
  Quad value = t.bits == 64 ? bits : bits & ((uint64_t{1} << t.bits) - 1);
  return t.is_signed && value > largest(t) ? value - model::power_of_two(t.bits) : value;
}

/// The pattern of a whole number, extended to 64 bits by its sign.
uint64_t pattern(Quad whole) {
  return whole < 0 ? -static_cast<uint64_t>(-whole) : static_cast<uint64_t>(whole);
}

Quad rounded(Quad value, Mode mode) {
  Quad down = static_cast<Quad>(static_cast<__int128>(value));
  if (down > value) down -= 1;
  if (down == value || mode == Mode::kDown) return down;
  if (mode == Mode::kUp) return down + 1;
  if (mode == Mode::kZero) return value < 0 ? down + 1 : down;
  Quad middle = down + Quad(0.5);
  bool odd = (static_cast<__int128>(down) & 1) != 0;
  return value > middle || (value == middle && odd) ? down + 1 : down;
}

struct Conversion {
  Type to, from;
  std::optional<Mode> integral = {}, rounding = {};
  bool ftz = false, sat = false, relu = false, finite = false;
};

uint64_t to_integer(const Value& v, bool nan, const Conversion& c) {
  if (nan) {
    bool zero = c.from.bits != 64 && c.to.bits != 64;
    return zero ? 0 : uint64_t{1} << (c.to.bits - 1);
  }
  Quad low = smallest(c.to), high = largest(c.to);
  if (v.infinite) return pattern(v.negative ? low : high);
  if (v.quad < low - 1) return pattern(low);
  if (v.quad > high + 1) return pattern(high);
  Quad whole = rounded(v.quad, *c.integral);
  return pattern(whole < low ? low : whole > high ? high : whole);
}

uint64_t to_float(Value v, bool nan, const Conversion& c) {
  const Layout& l = *c.to.layout;
  if (c.sat && (nan || v.negative)) return 0;
  if (nan) return &l == &model::kDouble ? 0x7ff8000000000000 : l.nan;
  if (c.relu && v.negative) return 0;
  bool small =
      !v.infinite && v.quad < model::power_of_two(100) && v.quad > -model::power_of_two(100);
  if (c.integral && small) v.quad = rounded(v.quad, *c.integral);
  uint64_t bits = model::encode(v, l, c.rounding.value_or(Mode::kNearest), c.finite);
  uint64_t one = static_cast<uint64_t>(l.bias) << l.mantissa;
  if (c.sat && bits > one) bits = one;
  return c.ftz && &l == &model::kSingle ? model::flushed(bits, l) : bits;
}

uint64_t converted(uint64_t raw, const Conversion& c) {
  if (c.from.layout == nullptr) {
    Quad whole = integer_of(raw, c.from);
    if (c.to.layout != nullptr) return to_float({.quad = whole, .negative = whole < 0}, false, c);
    if (c.sat)
      return pattern(whole < smallest(c.to)  ? smallest(c.to)
                     : whole > largest(c.to) ? largest(c.to)
                                             : whole);
    return pattern(integer_of(pattern(whole), c.to));
  }
  const Layout& l = *c.from.layout;
  uint64_t bits = c.from.bits == 64 ? raw : raw & ((uint64_t{1} << c.from.bits) - 1);
  bool nan = model::is_nan(bits, l);
  if (c.ftz && &l == &model::kSingle) bits = model::flushed(bits, l);
  Value v = model::value_of(bits, l);
  return c.to.layout != nullptr ? to_float(v, nan, c) : to_integer(v, nan, c);
}

/// Checks one conversion, with registers as wide as given.
void check_conversion(const std::string& modifiers, const Conversion& c, const char* to_register,
                      const char* from_register, int trials = 36) {
  std::string text = fmt::format("cvt{}.{}.{} {}0, {}1;", modifiers, c.to.name, c.from.name,
                                 to_register, from_register);
  AluCase test{text, returns([=](const uint64_t* in) { return converted(in[0], c); })};
  test.fills = {c.from.fill};
  test.trials = trials;
  check_alu(test);
}

TEST(AluConvert, ConvertsIntegersInRegistersOfAnyWidth) {
  for (const Type& to : kIntegers) {
    for (const Type& from : kIntegers) {
      for (int to_width : {8, 16, 32, 64}) {
        for (int from_width : {8, 16, 32, 64}) {
          if (to_width < to.bits || from_width < from.bits) continue;
          check_conversion("", {to, from}, register_of(to_width), register_of(from_width), 24);
          check_conversion(".sat", {.to = to, .from = from, .sat = true}, register_of(to_width),
                           register_of(from_width), 12);
        }
      }
    }
  }
}

TEST(AluConvert, ConvertsIntegersToFloats) {
  for (const Type& to : kFloats) {
    for (const Type& from : kIntegers) {
      for (const auto& [name, mode] : kRoundings) {
        Conversion c{.to = to, .from = from, .rounding = mode};
        check_conversion(fmt::format(".{}", name), c, register_of(to), register_of(from));
        c.sat = true;
        check_conversion(fmt::format(".{}.sat", name), c, register_of(to), register_of(from), 12);
      }
    }
  }
}

TEST(AluConvert, ConvertsFloatsToIntegers) {
  for (const Type& to : kIntegers) {
    for (const Type& from : kFloats) {
      for (const auto& [name, mode] : kIntegerRoundings) {
        Conversion c{.to = to, .from = from, .integral = mode};
        check_conversion(fmt::format(".{}", name), c, register_of(to), register_of(from), 72);
        if (from.bits != 32) continue;
        c.ftz = true;
        check_conversion(fmt::format(".{}.ftz", name), c, register_of(to), register_of(from));
      }
    }
  }
}

TEST(AluConvert, ConvertsBetweenFloats) {
  for (const Type& to : kFloats) {
    for (const Type& from : kFloats) {
      bool loses = to.bits < from.bits || (to.bits == from.bits && to.layout != from.layout);
      bool single = to.bits == 32 || from.bits == 32;
      for (const auto& [name, mode] : kRoundings) {
        std::string rounding = loses ? fmt::format(".{}", name) : "";
        for (int flags = 0; flags < 4; ++flags) {
          Conversion c{.to = to, .from = from, .ftz = (flags & 1) != 0, .sat = (flags & 2) != 0};
          if (c.ftz && !single) continue;
          if (loses) c.rounding = mode;
          // These keep what NaN carries, which is tested apart.
          bool keeps = to.bits == 32 && from.layout == &model::kBrain && flags == 0;
          if (keeps) continue;
          check_conversion(
              fmt::format("{}{}{}", rounding, c.ftz ? ".ftz" : "", c.sat ? ".sat" : ""), c,
              register_of(to), register_of(from), 48);
        }
        if (!loses) break;
      }
    }
  }
}

TEST(AluConvert, KeepsTheBitsOfBfloat) {
  check_alu({"cvt.f32.bf16 %f0, %h1;", returns([](const uint64_t* in) { return in[0] << 16; })});
}

TEST(AluConvert, RoundsFloatsToWholeNumbers) {
  for (const Type& type : kFloats) {
    for (const auto& [name, mode] : kIntegerRoundings) {
      Conversion c{.to = type, .from = type, .integral = mode};
      check_conversion(fmt::format(".{}", name), c, register_of(type), register_of(type), 96);
      if (type.bits != 32) continue;
      c.ftz = true;
      check_conversion(fmt::format(".{}.ftz", name), c, register_of(type), register_of(type));
      c.sat = true;
      check_conversion(fmt::format(".{}.ftz.sat", name), c, register_of(type), register_of(type));
    }
  }
}

TEST(AluConvert, TakesFloatsFromAndToWiderRegisters) {
  const Type &f16 = kFloats[0], &f32 = kFloats[2];
  check_conversion("", {f32, f16}, "%f", "%r");
  check_conversion("", {f32, f16}, "%rd", "%rd");
  check_conversion(".rn", {.to = f16, .from = f32, .rounding = Mode::kNearest}, "%r", "%f");
  check_conversion(".rzi", {.to = kIntegers[1], .from = f32, .integral = Mode::kZero}, "%rd", "%f");
  check_conversion(".rni", {.to = kIntegers[0], .from = f16, .integral = Mode::kNearest}, "%h",
                   "%h");
  check_conversion(".rn", {.to = f32, .from = kIntegers[1], .rounding = Mode::kNearest}, "%f",
                   "%rd");
  check_conversion(".rn", {.to = f32, .from = kIntegers[0], .rounding = Mode::kNearest}, "%f",
                   "%r");
}

TEST(AluConvert, ClampsSinglesToHalves) {
  const Type& f32 = kFloats[2];
  for (const Type& to : {kFloats[0], kFloats[1]}) {
    for (const auto& [name, mode] : {kRoundings[0], kRoundings[1]}) {
      for (int flags = 0; flags < 4; ++flags) {
        Conversion c{.to = to, .from = f32, .rounding = mode};
        c.relu = flags & 1;
        c.finite = flags & 2;
        std::string modifiers =
            fmt::format("{}{}", c.relu ? ".relu" : "", c.finite ? ".satfinite" : "");
        check_conversion(fmt::format(".{}{}", name, modifiers), c, "%h", "%f", 96);
        check_alu({fmt::format("cvt.{}{}.{}x2.f32 %r0, %f1, %f2;", name, modifiers, to.name),
                   returns([=](const uint64_t* in) {
                     return converted(in[0], c) << 16 | converted(in[1], c);
                   }),
                   {},
                   {},
                   96});
      }
    }
  }
}

TEST(AluConvert, RoundsToTf32) {
  auto tensor = [](Mode mode, bool relu, bool finite) {
    return returns([=](const uint64_t* in) {
      if (model::is_nan(in[0], model::kSingle)) return model::kSingle.nan;
      Value v = model::value_of(in[0], model::kSingle);
      if (relu && v.negative) return uint64_t{0};
      return model::encode(v, model::kTensor, mode, finite) << 13;
    });
  };
  check_alu({"cvt.rna.tf32.f32 %r0, %f1;", tensor(Mode::kAway, false, false), {}, {}, 96});
  check_alu({"cvt.rna.satfinite.tf32.f32 %r0, %f1;", tensor(Mode::kAway, false, true), {}, {}, 96});
  check_alu({"cvt.rn.tf32.f32 %r0, %f1;", tensor(Mode::kNearest, false, false), {}, {}, 96});
  check_alu({"cvt.rz.relu.tf32.f32 %r0, %f1;", tensor(Mode::kZero, true, false), {}, {}, 96});
}

struct Float8 {
  const char* name;
  const Layout* layout;
};
constexpr Float8 kFloats8[] = {{"e4m3x2", &model::kE4m3}, {"e5m2x2", &model::kE5m2}};

uint64_t to_float8(uint64_t bits, const Layout& from, const Layout& to, bool relu) {
  if (model::is_nan(bits, from)) return to.nan;
  Value v = model::value_of(bits, from);
  if (relu && v.negative) return 0;
  return model::encode(v, to, Mode::kNearest, true);
}

/// Every 16-bit number, in lanes of uniform and vector registers.
TEST(AluConvert, NarrowsEveryHalfToEightBits) {
  for (const Float8& type : kFloats8) {
    for (bool relu : {false, true}) {
      AluRig rig(
          fmt::format("cvt.rn.satfinite{}.{}.f16x2 %h0, %r1;", relu ? ".relu" : "", type.name));
      for (uint64_t base = 0; base < 0x10000; base += kLanes) {
        LaneValues lanes;
        for (size_t i = 0; i < kLanes; ++i) lanes.low[i] = (base + i) << 16 | (0xffff - base - i);
        rig.set_vector(rig.operands()[1].reg, lanes);
        rig.run();
        LaneValues result = rig.get(rig.operands()[0].reg);
        for (size_t i = 0; i < kLanes; ++i) {
          uint64_t high = to_float8(lanes.low[i] >> 16, model::kHalf, *type.layout, relu);
          uint64_t low = to_float8(lanes.low[i] & 0xffff, model::kHalf, *type.layout, relu);
          ASSERT_EQ(result.low[i], high << 8 | low)
              << type.name << fmt::format(" {:#x}", lanes.low[i]);
        }
      }
    }
  }
}

TEST(AluConvert, NarrowsToEightBits) {
  for (const Float8& type : kFloats8) {
    for (bool relu : {false, true}) {
      const Layout& l = *type.layout;
      const char* suffix = relu ? ".relu" : "";
      check_alu({fmt::format("cvt.rn.satfinite{}.{}.f32 %h0, %f1, %f2;", suffix, type.name),
                 returns([=, &l](const uint64_t* in) {
                   return to_float8(in[0], model::kSingle, l, relu) << 8 |
                          to_float8(in[1], model::kSingle, l, relu);
                 }),
                 {},
                 {},
                 400});
      check_alu({fmt::format("cvt.rn.satfinite{}.{}.f16x2 %h0, %r1;", suffix, type.name),
                 returns([=, &l](const uint64_t* in) {
                   return to_float8(in[0] >> 16, model::kHalf, l, relu) << 8 |
                          to_float8(in[0] & 0xffff, model::kHalf, l, relu);
                 }),
                 {Fill::kF16}});
    }
  }
}

TEST(AluConvert, WidensEightBits) {
  for (const Float8& type : kFloats8) {
    for (bool relu : {false, true}) {
      const Layout& l = *type.layout;
      auto widened = [=, &l](uint64_t byte) -> uint64_t {
        if (model::is_nan(byte, l)) return model::kHalf.nan;
        Value v = model::value_of(byte, l);
        return relu && v.negative ? 0 : model::encode(v, model::kHalf, Mode::kNearest);
      };
      check_alu({fmt::format("cvt.rn{}.f16x2.{} %r0, %h1;", relu ? ".relu" : "", type.name),
                 returns([=](const uint64_t* in) {
                   return widened(in[0] >> 8) << 16 | widened(in[0] & 0xff);
                 }),
                 {},
                 {},
                 200});
    }
  }
}

TEST(AluConvert, PacksIntegers) {
  for (const char* name : {"u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2"}) {
    int bits = std::stoi(name + 1);
    Type to{name, bits, name[0] == 's'};
    auto clamped = [=](uint64_t word) {
      Quad value = integer_of(word, kIntegers[5]);
      value = value < smallest(to) ? smallest(to) : value > largest(to) ? largest(to) : value;
      return pattern(value) & ((uint64_t{1} << bits) - 1);
    };
    bool three = bits < 16;
    std::string text = fmt::format("cvt.pack.sat.{}.s32{} %r0, %r1, %r2{};", name,
                                   three ? ".b32" : "", three ? ", %r3" : "");
    check_alu({text,
               returns([=](const uint64_t* in) {
                 uint64_t rest = three ? in[2] << (2 * bits) : 0;
                 return rest | clamped(in[0]) << bits | clamped(in[1]);
               }),
               {Fill::kSmall, Fill::kSmall}});
    check_alu({text, returns([=](const uint64_t* in) {
                 uint64_t rest = three ? in[2] << (2 * bits) : 0;
                 return rest | clamped(in[0]) << bits | clamped(in[1]);
               })});
  }
}

}  // namespace
}  // namespace cb::sim
