// Integer arithmetic, against models on 128-bit numbers that are cut to the width of the
// destination.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "simulator/exec/alu_check.h"

namespace cb::sim {
namespace {

using Wide = __int128;

struct IntType {
  const char* name;
  const char* reg;
  int bits;
  bool is_signed;
};
constexpr IntType kTypes[] = {{"u16", "%h", 16, false},  {"s16", "%h", 16, true},
                              {"u32", "%r", 32, false},  {"s32", "%r", 32, true},
                              {"u64", "%rd", 64, false}, {"s64", "%rd", 64, true}};

/// The number that a pattern stands for.
Wide number(uint64_t bits, const IntType& type) {
  Wide value = bits;
  if (type.bits < 64) value &= (Wide{1} << type.bits) - 1;
  if (type.is_signed && value >= Wide{1} << (type.bits - 1)) value -= Wide{1} << type.bits;
  return value;
}
Wide smallest(const IntType& type) { return type.is_signed ? -(Wide{1} << (type.bits - 1)) : 0; }
Wide largest(const IntType& type) {
  return (Wide{1} << (type.is_signed ? type.bits - 1 : type.bits)) - 1;
}
Wide clamped(Wide value, const IntType& type) {
  if (value < smallest(type)) return smallest(type);
  return value > largest(type) ? largest(type) : value;
}
Wide magnitude(Wide value) { return value < 0 ? -value : value; }

using Operation = std::function<Wide(Wide, Wide, Wide)>;

/// d = operation(a, b, c) modulo the width of d.
void check_operation(const std::string& opcode, const IntType& type, int sources,
                     const Operation& operation, const IntType* result = nullptr) {
  const IntType& d = result != nullptr ? *result : type;
  std::string text = fmt::format("{} {}0", opcode, d.reg);
  for (int i = 1; i <= sources; ++i) {
    text += fmt::format(", {}{}", i == 3 ? d.reg : type.reg, i);
  }
  check_alu({text + ";", returns([=](const uint64_t* in) {
               Wide c = sources > 2 ? number(in[2], d) : 0;
               Wide b = sources > 1 ? number(in[1], type) : 0;
               return static_cast<uint64_t>(operation(number(in[0], type), b, c));
             })});
}

TEST(AluInteger, AddsAndSubtracts) {
  for (const IntType& type : kTypes) {
    check_operation(fmt::format("add.{}", type.name), type, 2,
                    [](Wide a, Wide b, Wide) { return a + b; });
    check_operation(fmt::format("sub.{}", type.name), type, 2,
                    [](Wide a, Wide b, Wide) { return a - b; });
  }
}

TEST(AluInteger, SaturatesSums) {
  const IntType& s32 = kTypes[3];
  check_operation("add.sat.s32", s32, 2, [&](Wide a, Wide b, Wide) { return clamped(a + b, s32); });
  check_operation("sub.sat.s32", s32, 2, [&](Wide a, Wide b, Wide) { return clamped(a - b, s32); });
  check_operation("mad.hi.sat.s32", s32, 3,
                  [&](Wide a, Wide b, Wide c) { return clamped((a * b >> 32) + c, s32); });
}

TEST(AluInteger, AddsConstants) {
  for (const char* text :
       {"add.s32 %r0, %r1, -5;", "add.s64 %rd0, %rd1, -5;", "add.s16 %h0, %h1, -5;"}) {
    check_alu({text, returns([](const uint64_t* in) { return in[0] - 5; })});
  }
}

TEST(AluInteger, Multiplies) {
  for (const IntType& type : kTypes) {
    int bits = type.bits;
    check_operation(fmt::format("mul.lo.{}", type.name), type, 2, [](Wide a, Wide b, Wide) {
      return static_cast<Wide>(static_cast<unsigned __int128>(a) *
                               static_cast<unsigned __int128>(b));
    });
    check_operation(fmt::format("mad.lo.{}", type.name), type, 3, [](Wide a, Wide b, Wide c) {
      return static_cast<Wide>(static_cast<unsigned __int128>(a) *
                                   static_cast<unsigned __int128>(b) +
                               static_cast<unsigned __int128>(c));
    });
    // The high half by halves of b, since a product of u64 does not fit a signed 128-bit number.
    auto high = [bits](Wide a, Wide b) {
      Wide low_b = b & ((Wide{1} << (bits / 2)) - 1), high_b = b >> (bits / 2);
      return ((a * low_b >> (bits / 2)) + a * high_b) >> (bits / 2);
    };
    check_operation(fmt::format("mul.hi.{}", type.name), type, 2,
                    [=](Wide a, Wide b, Wide) { return high(a, b); });
    check_operation(fmt::format("mad.hi.{}", type.name), type, 3,
                    [=](Wide a, Wide b, Wide c) { return high(a, b) + c; });
  }
  for (size_t i = 0; i < 4; ++i) {
    check_operation(
        fmt::format("mul.wide.{}", kTypes[i].name), kTypes[i], 2,
        [](Wide a, Wide b, Wide) { return a * b; }, &kTypes[i + 2]);
    check_operation(
        fmt::format("mad.wide.{}", kTypes[i].name), kTypes[i], 3,
        [](Wide a, Wide b, Wide c) { return a * b + c; }, &kTypes[i + 2]);
  }
}

TEST(AluInteger, MultipliesByConstants) {
  check_alu(
      {"mul.wide.u32 %rd0, %r1, 16;", returns([](const uint64_t* in) { return in[0] << 4; })});
  check_alu({"mad.lo.s32 %r0, %r1, 16, %r2;",
             returns([](const uint64_t* in) { return in[0] * 16 + in[2]; })});
  check_alu(
      {"mul.lo.s64 %rd0, %rd1, -24;", returns([](const uint64_t* in) { return in[0] * -24; })});
}

TEST(AluInteger, MultipliesTwentyFourBits) {
  for (const IntType& type : {kTypes[2], kTypes[3]}) {
    IntType low{"", "", 24, type.is_signed};
    auto product = [=](Wide a, Wide b) {
      return number(static_cast<uint64_t>(a), low) * number(static_cast<uint64_t>(b), low);
    };
    check_operation(fmt::format("mul24.lo.{}", type.name), type, 2,
                    [=](Wide a, Wide b, Wide) { return product(a, b); });
    check_operation(fmt::format("mul24.hi.{}", type.name), type, 2,
                    [=](Wide a, Wide b, Wide) { return product(a, b) >> 16; });
    check_operation(fmt::format("mad24.lo.{}", type.name), type, 3,
                    [=](Wide a, Wide b, Wide c) { return product(a, b) + c; });
    check_operation(fmt::format("mad24.hi.{}", type.name), type, 3,
                    [=](Wide a, Wide b, Wide c) { return (product(a, b) >> 16) + c; });
    if (type.is_signed) {
      check_operation("mad24.hi.sat.s32", type, 3, [=](Wide a, Wide b, Wide c) {
        return clamped((product(a, b) >> 16) + c, type);
      });
    }
  }
}

TEST(AluInteger, DividesTowardZeroAndSurvivesZero) {
  for (const IntType& type : kTypes) {
    check_operation(fmt::format("div.{}", type.name), type, 2,
                    [](Wide a, Wide b, Wide) { return b == 0 ? Wide{-1} : a / b; });
    check_operation(fmt::format("rem.{}", type.name), type, 2,
                    [](Wide a, Wide b, Wide) { return b == 0 ? Wide{-1} : a % b; });
    for (int divisor : {1, 2, 3, 5, 8, 32, 100, 128}) {
      auto quotient = [=](const uint64_t* in) {
        return static_cast<uint64_t>(number(in[0], type) / divisor);
      };
      auto rest = [=](const uint64_t* in) {
        return static_cast<uint64_t>(number(in[0], type) % divisor);
      };
      check_alu({fmt::format("div.{} {}0, {}1, {};", type.name, type.reg, type.reg, divisor),
                 returns(quotient)});
      check_alu({fmt::format("rem.{} {}0, {}1, {};", type.name, type.reg, type.reg, divisor),
                 returns(rest)});
    }
  }
}

TEST(AluInteger, FindsMagnitudesAndExtremes) {
  for (const IntType& type : kTypes) {
    check_operation(fmt::format("min.{}", type.name), type, 2,
                    [](Wide a, Wide b, Wide) { return a < b ? a : b; });
    check_operation(fmt::format("max.{}", type.name), type, 2,
                    [](Wide a, Wide b, Wide) { return a < b ? b : a; });
    check_operation(fmt::format("sad.{}", type.name), type, 3,
                    [](Wide a, Wide b, Wide c) { return c + magnitude(a - b); });
    if (!type.is_signed) continue;
    check_operation(fmt::format("abs.{}", type.name), type, 1,
                    [](Wide a, Wide, Wide) { return magnitude(a); });
    check_operation(fmt::format("neg.{}", type.name), type, 1,
                    [](Wide a, Wide, Wide) { return -a; });
  }
  const IntType& s32 = kTypes[3];
  check_operation("min.relu.s32", s32, 2,
                  [](Wide a, Wide b, Wide) { return std::max<Wide>(a < b ? a : b, 0); });
  check_operation("max.relu.s32", s32, 2,
                  [](Wide a, Wide b, Wide) { return std::max<Wide>(a < b ? b : a, 0); });
}

/// The halves of a word as numbers of `type`, combined and packed again.
void check_halves(const std::string& opcode, const IntType& type, const Operation& operation) {
  check_alu({opcode + " %r0, %r1, %r2;", returns([=](const uint64_t* in) {
               uint64_t result = 0;
               for (int shift : {0, 16}) {
                 Wide half =
                     operation(number(in[0] >> shift, type), number(in[1] >> shift, type), 0);
                 result |= (static_cast<uint64_t>(half) & 0xffff) << shift;
               }
               return result;
             })});
}

TEST(AluInteger, WorksOnHalves) {
  for (const IntType& type : {kTypes[0], kTypes[1]}) {
    check_halves(fmt::format("add.{}x2", type.name), type,
                 [](Wide a, Wide b, Wide) { return a + b; });
    check_halves(fmt::format("min.{}x2", type.name), type,
                 [](Wide a, Wide b, Wide) { return a < b ? a : b; });
    check_halves(fmt::format("max.{}x2", type.name), type,
                 [](Wide a, Wide b, Wide) { return a < b ? b : a; });
  }
  check_halves("min.relu.s16x2", kTypes[1],
               [](Wide a, Wide b, Wide) { return std::max<Wide>(a < b ? a : b, 0); });
  check_halves("max.relu.s16x2", kTypes[1],
               [](Wide a, Wide b, Wide) { return std::max<Wide>(a < b ? b : a, 0); });
}

TEST(AluInteger, MultipliesVectorsOfBytes) {
  for (bool signed_a : {false, true}) {
    for (bool signed_b : {false, true}) {
      std::string types = fmt::format("{}.{}", signed_a ? "s32" : "u32", signed_b ? "s32" : "u32");
      IntType byte_a{"", "", 8, signed_a}, byte_b{"", "", 8, signed_b},
          half_a{"", "", 16, signed_a};
      check_alu(
          {fmt::format("dp4a.{} %r0, %r1, %r2, %r3;", types), returns([=](const uint64_t* in) {
             Wide total = in[2];
             for (int i = 0; i < 4; ++i)
               total += number(in[0] >> 8 * i, byte_a) * number(in[1] >> 8 * i, byte_b);
             return static_cast<uint64_t>(total);
           })});
      for (bool high : {false, true}) {
        check_alu({fmt::format("dp2a.{}.{} %r0, %r1, %r2, %r3;", high ? "hi" : "lo", types),
                   returns([=](const uint64_t* in) {
                     Wide total = in[2];
                     for (int i = 0; i < 2; ++i) {
                       int byte = high ? i + 2 : i;
                       total += number(in[0] >> 16 * i, half_a) * number(in[1] >> 8 * byte, byte_b);
                     }
                     return static_cast<uint64_t>(total);
                   })});
      }
    }
  }
}

/// Adds modulo 2^bits and says what is carried out.
void carry_sum(Wide sum, int bits, uint64_t* out) {
  out[0] = static_cast<uint64_t>(sum);
  out[1] = static_cast<uint64_t>(sum >> bits) != 0;
}

TEST(AluInteger, CarriesBetweenInstructions) {
  for (const IntType& type : {kTypes[2], kTypes[3], kTypes[4], kTypes[5]}) {
    IntType plain{"", "", type.bits, false};
    for (bool reads : {false, true}) {
      for (bool writes : {false, true}) {
        if (!reads && !writes) continue;
        std::string suffix =
            fmt::format("{}{}.{}", reads ? "c" : "", writes ? ".cc" : "", type.name);
        std::string registers = fmt::format("{0}0, {0}1, {0}2", type.reg);
        check_alu(
            {fmt::format("add{} {};", suffix, registers), [=](const uint64_t* in, uint64_t* out) {
               carry_sum(number(in[0], plain) + number(in[1], plain) + (reads ? in[2] : 0),
                         type.bits, out);
             }});
        check_alu(
            {fmt::format("sub{} {};", suffix, registers), [=](const uint64_t* in, uint64_t* out) {
               carry_sum(number(in[0], plain) - number(in[1], plain) - (reads ? in[2] : 0),
                         type.bits, out);
             }});
        for (bool high : {false, true}) {
          std::string mad = fmt::format("mad{}.{}{}.{}", reads ? "c" : "", high ? "hi" : "lo",
                                        writes ? ".cc" : "", type.name);
          check_alu({fmt::format("{} {}, {}3;", mad, registers, type.reg),
                     [=](const uint64_t* in, uint64_t* out) {
                       Wide a = number(in[0], type), b = number(in[1], type);
                       auto product =
                           static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b);
                       Wide part = static_cast<Wide>(high ? product >> type.bits : product);
                       carry_sum(number(static_cast<uint64_t>(part), plain) + number(in[2], plain) +
                                     (reads ? in[3] : 0),
                                 type.bits, out);
                     }});
        }
      }
    }
  }
}

}  // namespace
}  // namespace cb::sim
