// Video instructions, against models that follow the ISA's description: extract, operate, saturate,
// second operation, merge.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "simulator/exec/alu_check.h"

namespace cb::sim {
namespace {

using Wide = __int128;

/// ".u32" or ".s32".
const char* type_name(bool is_signed) { return is_signed ? ".s32" : ".u32"; }

/// The part of a register: "" the word, "b2" a byte, "h1" a half.
struct Field {
  int at = 0, bits = 32;
};
Field field_of(const std::string& part) {
  if (part.empty()) return {};
  int number = part[1] - '0';
  return part[0] == 'b' ? Field{8 * number, 8} : Field{16 * number, 16};
}

Wide read_field(uint64_t word, Field field, bool is_signed) {
  Wide value = static_cast<Wide>((word & 0xffffffff) >> field.at);
  value %= Wide{1} << field.bits;
  if (is_signed && value >= Wide{1} << (field.bits - 1)) value -= Wide{1} << field.bits;
  return value;
}

Wide clamp_to(Wide value, int bits, bool is_signed) {
  Wide span = Wide{1} << bits;
  Wide low = is_signed ? -span / 2 : 0;
  return std::min(std::max(value, low), low + span - 1);
}

using Primary = std::function<Wide(Wide a, Wide b)>;

struct Scalar {
  std::string opcode;
  Primary primary;
  bool d = false, a = false, b = false;  ///< signed
  bool sat = false;
  std::string d_part, a_part, b_part, second;
  std::string mode;   ///< of shifts
  bool typed = true;  ///< the destination has a type of its own
};

std::string text_of(const Scalar& s) {
  std::string text = s.opcode;
  if (s.typed) text += type_name(s.d);
  text += fmt::format("{}{}{}{}", type_name(s.a), type_name(s.b), s.sat ? ".sat" : "", s.mode);
  if (!s.second.empty()) text += "." + s.second;
  auto selected = [](const std::string& part) { return part.empty() ? "" : "." + part; };
  text += fmt::format(" %r0{}, %r1{}, %r2{}", selected(s.d_part), selected(s.a_part),
                      selected(s.b_part));
  return text + (s.second.empty() && s.d_part.empty() ? ";" : ", %r3;");
}

uint64_t scalar_model(const Scalar& s, const uint64_t* in) {
  bool third_signed = s.typed ? s.d : s.a;
  bool has_third = !s.second.empty() || !s.d_part.empty();
  Wide tmp = s.primary(read_field(in[0], field_of(s.a_part), s.a),
                       read_field(in[1], field_of(s.b_part), s.b));
  Field to = field_of(s.d_part);
  if (s.sat) tmp = clamp_to(tmp, to.bits, s.d);
  Wide c = has_third ? read_field(in[2], {}, third_signed) : 0;
  if (s.second == "add") tmp += c;
  if (s.second == "min") tmp = tmp < c ? tmp : c;
  if (s.second == "max") tmp = tmp > c ? tmp : c;
  if (s.d_part.empty()) return static_cast<uint64_t>(tmp) & 0xffffffff;
  uint64_t mask = ((uint64_t{1} << to.bits) - 1) << to.at;
  return (static_cast<uint64_t>(tmp) << to.at & mask) | (in[2] & ~mask);
}

void check_scalar(const Scalar& s) {
  check_alu({.text = text_of(s),
             .model = returns([s](const uint64_t* in) { return scalar_model(s, in); }),
             .trials = 16});
}

/// Each combination of types, with and without saturation, with parts and second operations.
void check_all_forms(Scalar s, bool b_signed = true, bool saturates = true) {
  for (int signs = 0; signs < 8; ++signs) {
    s.d = (signs & 1) != 0;
    s.a = (signs & 2) != 0;
    s.b = (signs & 4) != 0;
    if ((s.b && !b_signed) || (s.d && !s.typed)) continue;
    for (bool sat : {false, true}) {
      if (sat && !saturates) continue;
      s.sat = sat;
      check_scalar(s);
      for (const char* part : {"b0", "b3", "h1"}) {
        Scalar parts = s;
        parts.a_part = part;
        parts.b_part = part[0] == 'b' ? "h0" : "b2";
        check_scalar(parts);
        Scalar merging = s;
        merging.d_part = part;
        check_scalar(merging);
      }
      for (const char* second : {"add", "min", "max"}) {
        Scalar two = s;
        two.second = second;
        check_scalar(two);
      }
    }
  }
}

TEST(AluVideo, AddsSubtractsAndCompares) {
  check_all_forms({.opcode = "vadd", .primary = [](Wide a, Wide b) { return a + b; }});
  check_all_forms({.opcode = "vsub", .primary = [](Wide a, Wide b) { return a - b; }});
  check_all_forms(
      {.opcode = "vabsdiff", .primary = [](Wide a, Wide b) { return a < b ? b - a : a - b; }});
  check_all_forms({.opcode = "vmin", .primary = [](Wide a, Wide b) { return a < b ? a : b; }});
  check_all_forms({.opcode = "vmax", .primary = [](Wide a, Wide b) { return a < b ? b : a; }});
}

TEST(AluVideo, Shifts) {
  auto power = [](Wide n) { return Wide{1} << static_cast<int>(n); };
  for (const char* mode : {".clamp", ".wrap"}) {
    auto amount = [clamps = mode[1] == 'c'](Wide b) { return clamps ? (b > 32 ? 32 : b) : b % 32; };
    check_all_forms({.opcode = "vshl",
                     .primary = [=](Wide a, Wide b) { return a * power(amount(b)); },
                     .mode = mode},
                    false);
    // Division rounds towards zero, a shift down.
    auto right = [=](Wide a, Wide b) {
      Wide divisor = power(amount(b));
      return a >= 0 ? a / divisor : -((-a + divisor - 1) / divisor);
    };
    check_all_forms({.opcode = "vshr", .primary = right, .mode = mode}, false);
  }
}

TEST(AluVideo, SetsByComparison) {
  const std::pair<const char*, std::function<bool(Wide, Wide)>> kCompares[] = {
      {".eq", [](Wide a, Wide b) { return a == b; }},
      {".ne", [](Wide a, Wide b) { return a != b; }},
      {".lt", [](Wide a, Wide b) { return a < b; }},
      {".le", [](Wide a, Wide b) { return a <= b; }},
      {".gt", [](Wide a, Wide b) { return a > b; }},
      {".ge", [](Wide a, Wide b) { return a >= b; }}};
  for (const auto& [name, compare] : kCompares) {
    check_all_forms(
        {.opcode = "vset",
         .primary = [compare = compare](Wide a, Wide b) { return compare(a, b) ? 1 : 0; },
         .mode = name,
         .typed = false},
        true, false);
  }
}

struct Mad {
  bool d = false, a = false, b = false, sat = false, plus_one = false;
  int shift = 0;
  std::string a_part, b_part;
  std::string a_sign, b_sign, c_sign;
};

void check_mad(const Mad& m) {
  auto selected = [](const std::string& part) { return part.empty() ? "" : "." + part; };
  std::string text =
      fmt::format("vmad{}{}{}{}{}{} %r0, {}%r1{}, {}%r2{}, {}%r3;", type_name(m.d), type_name(m.a),
                  type_name(m.b), m.plus_one ? ".po" : "", m.sat ? ".sat" : "",
                  m.shift == 0 ? "" : fmt::format(".shr{}", m.shift), m.a_sign, selected(m.a_part),
                  m.b_sign, selected(m.b_part), m.c_sign);
  auto model = [m](const uint64_t* in) {
    bool negates_product = m.a_sign != m.b_sign;
    bool is_signed = m.a || m.b || negates_product || !m.c_sign.empty();
    Wide product =
        read_field(in[0], field_of(m.a_part), m.a) * read_field(in[1], field_of(m.b_part), m.b);
    if (negates_product) product = -product;
    Wide c = read_field(in[2], {}, is_signed);
    if (!m.c_sign.empty()) c = read_field(~in[2], {}, true) + 1;
    Wide sum = product + c + (m.plus_one ? 1 : 0);
    Wide divisor = Wide{1} << m.shift;
    Wide shifted = sum >= 0 ? sum / divisor : -((-sum + divisor - 1) / divisor);
    if (m.sat) shifted = clamp_to(shifted, 32, is_signed);
    return static_cast<uint64_t>(shifted) & 0xffffffff;
  };
  check_alu({.text = text, .model = returns(model), .trials = 16});
}

TEST(AluVideo, MultipliesAndAdds) {
  for (int signs = 0; signs < 4; ++signs) {
    for (int shift : {0, 7, 15}) {
      for (bool sat : {false, true}) {
        Mad mad{
            .d = true, .a = (signs & 1) != 0, .b = (signs & 2) != 0, .sat = sat, .shift = shift};
        check_mad(mad);
        mad.a_part = "b1";
        mad.b_part = "h1";
        check_mad(mad);
        Mad plus = mad;
        plus.plus_one = true;
        check_mad(plus);
        Mad negative = mad;
        negative.a_sign = "-";
        check_mad(negative);
        negative.b_sign = "-";
        check_mad(negative);
        Mad minus = mad;
        minus.c_sign = "-";
        check_mad(minus);
      }
    }
  }
}

struct Simd {
  std::string opcode;
  Primary primary;
  int parts = 2;
  bool d = false, a = false, b = false, sat = false, add = false;
  std::string mask, a_select, b_select;
  std::string mode;
  bool typed = true;
};

uint64_t simd_model(const Simd& s, const uint64_t* in) {
  int bits = 32 / s.parts;
  auto part = [&](const std::string& select, int first, int i) {
    int number = first + i;
    if (!select.empty()) number = select[select.size() - 1 - static_cast<size_t>(i)] - '0';
    return std::pair(number < s.parts ? in[0] : in[1], Field{number % s.parts * bits, bits});
  };
  uint64_t merged = 0;
  Wide sum = static_cast<Wide>(in[2]);
  for (int i = 0; i < s.parts; ++i) {
    bool taken = s.mask.empty() || s.mask.find(static_cast<char>('0' + i)) != std::string::npos;
    auto [a, a_field] = part(s.a_select, 0, i);
    auto [b, b_field] = part(s.b_select, s.parts, i);
    Wide result = s.primary(read_field(a, a_field, s.a), read_field(b, b_field, s.b));
    if (s.sat) result = clamp_to(result, bits, s.d);
    if (taken) sum += result;
    uint64_t mask = ((uint64_t{1} << bits) - 1) << (i * bits);
    merged |= (taken ? static_cast<uint64_t>(result) << (i * bits) : in[2]) & mask;
  }
  return (s.add ? static_cast<uint64_t>(sum) : merged) & 0xffffffff;
}

void check_simd(const Simd& s) {
  auto selected = [&](const std::string& digits) {
    return digits.empty() ? "" : (s.parts == 2 ? ".h" : ".b") + digits;
  };
  std::string text = fmt::format("{}{}", s.opcode, s.parts);
  if (s.typed) text += type_name(s.d);
  text += fmt::format("{}{}{}{}{} %r0{}, %r1{}, %r2{}, %r3;", type_name(s.a), type_name(s.b),
                      s.mode, s.sat ? ".sat" : "", s.add ? ".add" : "", selected(s.mask),
                      selected(s.a_select), selected(s.b_select));
  check_alu({.text = text,
             .model = returns([s](const uint64_t* in) { return simd_model(s, in); }),
             .trials = 16});
}

void check_all_simd(Simd s) {
  for (int parts : {2, 4}) {
    for (int signs = 0; signs < 8; ++signs) {
      s.parts = parts;
      s.d = (signs & 1) != 0;
      s.a = (signs & 2) != 0;
      s.b = (signs & 4) != 0;
      if (s.d && !s.typed) continue;
      check_simd(s);
      Simd masked = s;
      masked.mask = parts == 2 ? "1" : "320";
      masked.a_select = parts == 2 ? "03" : "7250";
      check_simd(masked);
      if (s.typed) {
        masked.sat = true;
        masked.b_select = parts == 2 ? "11" : "0123";
        check_simd(masked);
      }
      Simd sum = s;
      sum.add = true;
      check_simd(sum);
      sum.mask = parts == 2 ? "0" : "21";
      check_simd(sum);
    }
  }
}

TEST(AluVideo, WorksOnHalvesAndBytes) {
  check_all_simd({.opcode = "vadd", .primary = [](Wide a, Wide b) { return a + b; }});
  check_all_simd({.opcode = "vsub", .primary = [](Wide a, Wide b) { return a - b; }});
  check_all_simd(
      {.opcode = "vabsdiff", .primary = [](Wide a, Wide b) { return a < b ? b - a : a - b; }});
  check_all_simd({.opcode = "vmin", .primary = [](Wide a, Wide b) { return a < b ? a : b; }});
  check_all_simd({.opcode = "vmax", .primary = [](Wide a, Wide b) { return a < b ? b : a; }});
}

TEST(AluVideo, AveragesAwayFromMinusInfinityWhereTheSumIsNotNegative) {
  check_all_simd({.opcode = "vavrg", .primary = [](Wide a, Wide b) {
                    Wide sum = a + b;
                    return sum >= 0 ? (sum + 1) / 2 : -((1 - sum) / 2);
                  }});
}

TEST(AluVideo, SetsHalvesAndBytes) {
  check_all_simd({.opcode = "vset",
                  .primary = [](Wide a, Wide b) { return a < b ? 1 : 0; },
                  .mode = ".lt",
                  .typed = false});
  check_all_simd({.opcode = "vset",
                  .primary = [](Wide a, Wide b) { return a != b ? 1 : 0; },
                  .mode = ".ne",
                  .typed = false});
}

std::string refusal(const std::string& text) {
  AluRig rig(text);
  if (!rig.answer() || *rig.answer()) return "taken";
  return rig.answer()->error().message();
}

TEST(AluVideo, RefusesPartsThatAreNotThere) {
  for (const char* text :
       {"vadd.u32.u32.u32 %r0, %r1.b4, %r2;", "vadd.u32.u32.u32 %r0, %r1.h01, %r2;",
        "vadd.u32.u32.u32.add %r0.b1, %r1, %r2, %r3;", "vadd.u32.u32.u32 %r0, -%r1, %r2;",
        "vmad.s32.u32.u32.po %r0, -%r1, %r2, %r3;", "vmad.u32.u32.u32 %r0.h1, %r1, %r2, %r3;",
        "vadd2.u32.u32.u32 %r0, %r1.h4, %r2, %r3;", "vadd2.u32.u32.u32 %r0.h01, %r1, %r2, %r3;",
        "vadd4.u32.u32.u32 %r0, %r1.b321, %r2, %r3;", "vadd4.u32.u32.u32 %r0, %r1, %r2;",
        "vadd4.u32.u32.u32.sat.add %r0, %r1, %r2, %r3;", "vshl.u32.u32.s32.wrap %r0, %r1, %r2;",
        "vset.u32.u32 %r0, %r1, %r2;", "vadd.u32.u32 %r0, %r1, %r2;"}) {
    EXPECT_NE(refusal(text), "taken") << text;
  }
}

}  // namespace
}  // namespace cb::sim
