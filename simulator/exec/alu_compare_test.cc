// setp, set and testp: each comparison of each type, from how two values relate: below, same,
// above, or unordered.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "simulator/exec/alu_check.h"
#include "simulator/exec/float_model.h"

namespace cb::sim {
namespace {

using model::Layout;
using model::Quad;

/// How two operands compare.
enum Relation { kBelow, kSame, kAbove, kUnordered };

using Compare = std::function<Relation(uint64_t, uint64_t)>;

Relation order(__int128 a, __int128 b) { return a < b ? kBelow : a == b ? kSame : kAbove; }

Compare integers(int bits, bool is_signed) {
  return [=](uint64_t a, uint64_t b) {
    // Moving the sign bit turns signed order into unsigned order.
    uint64_t flip = is_signed ? uint64_t{1} << (bits - 1) : 0;
    uint64_t mask = ~uint64_t{0} >> (64 - bits);
    return order((a ^ flip) & mask, (b ^ flip) & mask);
  };
}

Compare floats(const Layout& l, bool ftz) {
  return [=, &l](uint64_t a, uint64_t b) {
    if (model::is_nan(a, l) || model::is_nan(b, l)) return kUnordered;
    auto number = [&](uint64_t bits) -> Quad {
      model::Value v = model::value_of(ftz ? model::flushed(bits, l) : bits, l);
      static const Quad beyond = model::power_of_two(2000);
      return v.infinite ? (v.negative ? -beyond : beyond) : v.quad;
    };
    Quad x = number(a), y = number(b);
    return x < y ? kBelow : x == y ? kSame : kAbove;
  };
}

bool holds(const std::string& name, Relation r) {
  if (name == "num") return r != kUnordered;
  if (name == "nan") return r == kUnordered;
  bool unordered = name.size() == 3;
  if (r == kUnordered) return unordered;
  std::string base = name.substr(0, 2);
  if (base == "eq") return r == kSame;
  if (base == "ne") return r != kSame;
  if (base == "lt" || base == "lo") return r == kBelow;
  if (base == "le" || base == "ls") return r != kAbove;
  if (base == "gt" || base == "hi") return r == kAbove;
  return r != kBelow;
}

bool combined(const std::string& combination, bool t, bool c) {
  if (combination == "and") return t && c;
  if (combination == "or") return t || c;
  return combination == "xor" ? t != c : t;
}

struct Source {
  std::string type;
  const char* reg;
  Compare compare;
  std::vector<std::string> comparisons;
  Fill fill = Fill::kByType;
  std::string ftz = {};  ///< ".ftz" if the text has it
};

const std::vector<std::string> kSigned = {"eq", "ne", "lt", "le", "gt", "ge"};
const std::vector<std::string> kUnsigned = {"eq", "ne", "lt", "le", "gt",
                                            "ge", "lo", "ls", "hi", "hs"};
const std::vector<std::string> kBits = {"eq", "ne"};
const std::vector<std::string> kFloat = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                         "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};

std::vector<Source> sources() {
  std::vector<Source> all;
  constexpr std::pair<int, const char*> kWidths[] = {{16, "%h"}, {32, "%r"}, {64, "%rd"}};
  for (const auto& [bits, reg] : kWidths) {
    std::string n = std::to_string(bits);
    all.push_back({"u" + n, reg, integers(bits, false), kUnsigned});
    all.push_back({"s" + n, reg, integers(bits, true), kSigned});
    all.push_back({"b" + n, reg, integers(bits, false), kBits});
  }
  all.push_back({"f32", "%f", floats(model::kSingle, false), kFloat});
  all.push_back({"f32", "%f", floats(model::kSingle, true), kFloat, Fill::kByType, ".ftz"});
  all.push_back({"f64", "%fd", floats(model::kDouble, false), kFloat});
  all.push_back({"f16", "%h", floats(model::kHalf, false), kFloat, Fill::kF16});
  all.push_back({"f16", "%h", floats(model::kHalf, true), kFloat, Fill::kF16, ".ftz"});
  all.push_back({"bf16", "%h", floats(model::kBrain, false), kFloat, Fill::kBf16});
  return all;
}

constexpr const char* kCombinations[] = {"", "and", "or", "xor"};

std::string dotted(const std::string& name) { return name.empty() ? "" : "." + name; }

TEST(AluCompare, SetsPredicates) {
  for (const Source& s : sources()) {
    for (const std::string& name : s.comparisons) {
      for (const char* combination : kCombinations) {
        bool combines = *combination != 0;
        std::string text = fmt::format("setp.{}{}{}.{} ", name, dotted(combination), s.ftz, s.type);
        std::string operands = fmt::format(", {0}1, {0}2{1};", s.reg, combines ? ", !%p2" : "");
        auto truth = [=](const uint64_t* in, bool complement) {
          bool t = holds(name, s.compare(in[0], in[1])) != complement;
          return combined(combination, t, combines && in[2] != 0);
        };
        std::vector<Fill> fills = {s.fill, s.fill};
        check_alu({text + "%p0" + operands,
                   [=](const uint64_t* in, uint64_t* out) { out[0] = truth(in, false); },
                   fills,
                   {},
                   combines ? 24 : 48});
        LaneModel pair = [=](const uint64_t* in, uint64_t* out) {
          out[0] = truth(in, false);
          out[1] = truth(in, true);
        };
        check_alu({text + "%p0|%p1" + operands, pair, fills, {}, 12});
      }
    }
  }
}

TEST(AluCompare, ComparesWithConstants) {
  for (const char* name : {"eq", "ne", "lt", "le", "gt", "ge"}) {
    for (int64_t constant : {0ll, 1ll, 32ll, -1ll, 1000ll}) {
      for (bool is_signed : {false, true}) {
        for (int bits : {32, 64}) {
          Compare compare = integers(bits, is_signed);
          std::string text = fmt::format("setp.{}.{}{} %p0, {}1, {};", name, is_signed ? "s" : "u",
                                         bits, bits == 32 ? "%r" : "%rd", constant);
          check_alu({text,
                     returns([=](const uint64_t* in) {
                       return holds(name, compare(in[0], in[1])) ? 1 : 0;
                     }),
                     {},
                     {},
                     96});
        }
      }
    }
  }
}

TEST(AluCompare, SetsNumbers) {
  for (const Source& s : sources()) {
    bool half = s.type == "f16" || s.type == "bf16";
    std::vector<std::pair<std::string, uint64_t>> results = {
        {"u32", 0xffffffff}, {"s32", 0xffffffff}, {"f16", 0x3c00}, {"bf16", 0x3f80}};
    if (half) {
      results.push_back({"u16", 0xffff});
      results.push_back({"s16", 0xffff});
    } else {
      results.push_back({"f32", 0x3f800000});
    }
    for (const std::string& name : s.comparisons) {
      for (const auto& [type, yes] : results) {
        for (const char* combination : {"", "xor", "and", "or"}) {
          if (name != "lt" && name != "ge" && (*combination == 'a' || *combination == 'o'))
            continue;
          bool combines = *combination != 0;
          const char* reg = type.ends_with("16") ? "%h" : type == "f32" ? "%f" : "%r";
          std::string text =
              fmt::format("set.{}{}{}.{}.{} {}0, {}1, {}2{};", name, dotted(combination), s.ftz,
                          type, s.type, reg, s.reg, s.reg, combines ? ", %p1" : "");
          LaneModel model = returns([=, yes = yes](const uint64_t* in) {
            bool t = holds(name, s.compare(in[0], in[1]));
            return combined(combination, t, combines && in[2] != 0) ? yes : 0;
          });
          check_alu({text, model, {s.fill, s.fill}, {}, 12});
        }
      }
    }
  }
}

TEST(AluCompare, ComparesPairs) {
  struct Pair {
    const char* type;
    Compare compare;
    Fill fill;
    const char* ftz;
    uint64_t one;
  };
  const Pair pairs[] = {{"f16x2", floats(model::kHalf, false), Fill::kF16, "", 0x3c00},
                        {"f16x2", floats(model::kHalf, true), Fill::kF16, ".ftz", 0x3c00},
                        {"bf16x2", floats(model::kBrain, false), Fill::kBf16, "", 0x3f80}};
  for (const Pair& pair : pairs) {
    for (const std::string& name : kFloat) {
      for (const char* combination : kCombinations) {
        bool combines = *combination != 0;
        auto half = [=](const uint64_t* in, int shift) {
          bool t = holds(name, pair.compare(in[0] >> shift & 0xffff, in[1] >> shift & 0xffff));
          return combined(combination, t, combines && in[2] != 0);
        };
        std::string modifiers = fmt::format("{}{}{}", name, dotted(combination), pair.ftz);
        const char* condition = combines ? ", %p3" : "";
        std::vector<Fill> fills = {pair.fill, pair.fill};
        LaneModel predicates = [=](const uint64_t* in, uint64_t* out) {
          out[0] = half(in, 0);
          out[1] = half(in, 16);
        };
        check_alu({fmt::format("setp.{}.{} %p0|%p1, %r1, %r2{};", modifiers, pair.type, condition),
                   predicates, fills});
        check_alu({fmt::format("setp.{}.{} %p0, %r1, %r2{};", modifiers, pair.type, condition),
                   predicates,
                   fills,
                   {},
                   12});
        for (const char* result : {pair.type, "u32", "s32"}) {
          uint64_t yes = result == pair.type ? pair.one : 0xffff;
          LaneModel model = returns([=](const uint64_t* in) {
            return (half(in, 0) ? yes : 0) | (half(in, 16) ? yes << 16 : 0);
          });
          check_alu({fmt::format("set.{}.{}.{} %r0, %r1, %r2{};", modifiers, result, pair.type,
                                 condition),
                     model,
                     fills,
                     {},
                     24});
        }
      }
    }
  }
}

TEST(AluCompare, TestsProperties) {
  struct Property {
    const char* name;
    bool (*holds)(uint64_t, const Layout&);
  };
  constexpr Property kProperties[] = {
      {"finite",
       [](uint64_t v, const Layout& l) {
         return !model::is_nan(v, l) && !model::value_of(v, l).infinite;
       }},
      {"infinite",
       [](uint64_t v, const Layout& l) {
         return model::value_of(v, l).infinite && !model::is_nan(v, l);
       }},
      {"number", [](uint64_t v, const Layout& l) { return !model::is_nan(v, l); }},
      {"notanumber", [](uint64_t v, const Layout& l) { return model::is_nan(v, l); }},
      {"normal",
       [](uint64_t v, const Layout& l) {
         return !model::is_nan(v, l) && !model::value_of(v, l).infinite &&
                !model::is_subnormal(v, l);
       }},
      {"subnormal", [](uint64_t v, const Layout& l) { return model::is_subnormal(v, l); }}};
  for (const Property& property : kProperties) {
    check_alu(
        {fmt::format("testp.{}.f32 %p0, %f1;", property.name),
         returns([=](const uint64_t* in) { return property.holds(in[0], model::kSingle) ? 1 : 0; }),
         {},
         {},
         96});
    check_alu(
        {fmt::format("testp.{}.f64 %p0, %fd1;", property.name),
         returns([=](const uint64_t* in) { return property.holds(in[0], model::kDouble) ? 1 : 0; }),
         {},
         {},
         96});
  }
}

}  // namespace
}  // namespace cb::sim
