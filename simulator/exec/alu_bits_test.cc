// Logic, shifts, bit fields, lop3 and prmt, against models that say each bit of the result by
// itself.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "simulator/exec/alu_check.h"

namespace cb::sim {
namespace {

struct BitType {
  const char* name;
  const char* reg;
  int bits;
};
constexpr BitType kTypes[] = {{"b16", "%h", 16}, {"b32", "%r", 32}, {"b64", "%rd", 64}};

uint64_t ones(int bits) { return bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1; }
bool bit(uint64_t value, int i) { return i >= 0 && i < 64 && (value >> i & 1) != 0; }

/// Builds a word from a function that says each of its bits.
template <typename Bit>
uint64_t word(int bits, Bit&& says) {
  uint64_t result = 0;
  for (int i = 0; i < bits; ++i) result |= uint64_t{says(i)} << i;
  return result;
}

TEST(AluBits, CombinesBits) {
  for (const BitType& type : kTypes) {
    std::string two = fmt::format("{0}0, {0}1, {0}2;", type.reg);
    std::string one = fmt::format("{0}0, {0}1;", type.reg);
    int n = type.bits;
    check_alu({fmt::format("and.{} {}", type.name, two), returns([=](const uint64_t* in) {
                 return word(n, [&](int i) { return bit(in[0], i) && bit(in[1], i); });
               })});
    check_alu({fmt::format("or.{} {}", type.name, two), returns([=](const uint64_t* in) {
                 return word(n, [&](int i) { return bit(in[0], i) || bit(in[1], i); });
               })});
    check_alu({fmt::format("xor.{} {}", type.name, two), returns([=](const uint64_t* in) {
                 return word(n, [&](int i) { return bit(in[0], i) != bit(in[1], i); });
               })});
    check_alu({fmt::format("not.{} {}", type.name, one), returns([=](const uint64_t* in) {
                 return word(n, [&](int i) { return !bit(in[0], i); });
               })});
    check_alu({fmt::format("cnot.{} {}", type.name, one),
               returns([](const uint64_t* in) { return in[0] == 0 ? 1 : 0; })});
  }
}

TEST(AluBits, MasksThreadIndices) {
  for (const BitType& type : kTypes) {
    for (uint64_t mask : {0x1full, 0x7ull, 0xffe0ull, 0x0f0ull, 0xffffffffull, 0x8000ull,
                          0xffffffffffffff80ull, 0x5ull, 0xff00ull, 0ull}) {
      for (const char* opcode : {"and", "or", "xor"}) {
        std::string text = fmt::format("{0}.{1} {2}0, {2}1, {3:#x};", opcode, type.name, type.reg,
                                       mask & ones(type.bits));
        check_alu({text,
                   returns([=](const uint64_t* in) {
                     if (opcode[0] == 'a') return in[0] - (in[0] & ~mask);
                     return opcode[0] == 'o' ? (in[0] & ~mask) + mask
                                             : (in[0] | mask) - (in[0] & mask);
                   }),
                   {},
                   {},
                   96});
      }
    }
  }
}

TEST(AluBits, ShiftsByAnyAmount) {
  for (const BitType& type : kTypes) {
    int n = type.bits;
    std::string operands = fmt::format("{0}0, {0}1, %r7;", type.reg);
    auto position = [=](const uint64_t* in, int i) {
      return i + static_cast<int>(std::min<uint64_t>(in[1], 64));
    };
    LaneModel left = returns([=](const uint64_t* in) {
      int shift = static_cast<int>(std::min<uint64_t>(in[1], 64));
      return word(n, [&](int i) { return i >= shift && bit(in[0], i - shift); });
    });
    LaneModel right = returns([=](const uint64_t* in) {
      return word(n, [&](int i) { return position(in, i) < n && bit(in[0], position(in, i)); });
    });
    LaneModel arithmetic = returns([=](const uint64_t* in) {
      return word(n, [&](int i) { return bit(in[0], std::min(position(in, i), n - 1)); });
    });
    std::vector<Fill> fills = {Fill::kInteger, Fill::kSmall};
    check_alu({fmt::format("shl.b{} {}", n, operands), left, fills});
    check_alu({fmt::format("shr.b{} {}", n, operands), right, fills});
    check_alu({fmt::format("shr.u{} {}", n, operands), right, fills});
    check_alu({fmt::format("shr.s{} {}", n, operands), arithmetic, fills});
    for (int amount : {0, 1, 2, 5, 15, 16, 31, 32, 63, 64, 200}) {
      std::string constant = fmt::format("{0}0, {0}1, {1};", type.reg, amount);
      check_alu({fmt::format("shl.b{} {}", n, constant), left});
      check_alu({fmt::format("shr.u{} {}", n, constant), right});
      check_alu({fmt::format("shr.s{} {}", n, constant), arithmetic});
    }
  }
}

TEST(AluBits, CountsAndSearches) {
  for (const BitType& type : {kTypes[1], kTypes[2]}) {
    int n = type.bits;
    std::string operands = fmt::format("%r7, {}1;", type.reg);
    auto highest = [=](uint64_t value) {
      int top = n - 1;
      while (top >= 0 && !bit(value, top)) --top;
      return top;
    };
    check_alu({fmt::format("popc.{} {}", type.name, operands), returns([=](const uint64_t* in) {
                 uint64_t count = 0;
                 for (int i = 0; i < n; ++i) count += bit(in[0], i);
                 return count;
               })});
    check_alu({fmt::format("clz.{} {}", type.name, operands), returns([=](const uint64_t* in) {
                 return static_cast<uint64_t>(n - 1 - highest(in[0]));
               })});
    check_alu(
        {fmt::format("brev.{0} {1}0, {1}1;", type.name, type.reg), returns([=](const uint64_t* in) {
           return word(n, [&](int i) { return bit(in[0], n - 1 - i); });
         })});
    for (bool is_signed : {false, true}) {
      auto found = [=](uint64_t value) {
        return highest(is_signed && bit(value, n - 1) ? ~value & ones(n) : value);
      };
      std::string name = fmt::format("{}{}", is_signed ? "s" : "u", n);
      check_alu({fmt::format("bfind.{} {}", name, operands),
                 returns([=](const uint64_t* in) { return static_cast<uint64_t>(found(in[0])); })});
      check_alu(
          {fmt::format("bfind.shiftamt.{} {}", name, operands), returns([=](const uint64_t* in) {
             int top = found(in[0]);
             return static_cast<uint64_t>(top < 0 ? -1 : n - 1 - top);
           })});
    }
  }
}

TEST(AluBits, FindsTheNthBit) {
  LaneModel model = returns([](const uint64_t* in) -> uint64_t {
    int base = static_cast<int>(in[1]);
    auto offset = static_cast<int64_t>(static_cast<int32_t>(in[2]));
    if (in[1] > 31) return ~0u;
    if (offset == 0) return bit(in[0], base) ? in[1] : ~0u;
    int64_t wanted = offset < 0 ? -offset : offset;
    for (int i = base; i >= 0 && i < 32; i += offset < 0 ? -1 : 1) {
      if (bit(in[0], i) && --wanted == 0) return static_cast<uint64_t>(i);
    }
    return ~0u;
  });
  check_alu({"fns.b32 %r0, %r1, %r2, %r3;",
             model,
             {Fill::kInteger, Fill::kSmall, Fill::kSmall},
             {},
             400});
  check_alu({"fns.b32 %r0, %r1, %r2, -3;", model, {Fill::kInteger, Fill::kSmall}, {}, 100});
}

TEST(AluBits, ExtractsFields) {
  for (int n : {32, 64}) {
    const char* reg = n == 32 ? "%r" : "%rd";
    for (bool is_signed : {false, true}) {
      LaneModel model = returns([=](const uint64_t* in) {
        int position = static_cast<int>(in[1] & 0xff), length = static_cast<int>(in[2] & 0xff);
        bool extends = is_signed && length != 0 && bit(in[0], std::min(position + length, n) - 1);
        return word(n, [&](int i) {
          return i < length && position + i < n ? bit(in[0], position + i) : extends;
        });
      });
      std::string name = fmt::format("bfe.{0}{1} {2}0, {2}1", is_signed ? "s" : "u", n, reg);
      check_alu(
          {name + ", %r5, %r6;", model, {Fill::kInteger, Fill::kSmall, Fill::kSmall}, {}, 200});
      for (const char* field :
           {"0, 5", "5, 3", "8, 8", "0, 32", "16, 48", "40, 40", "5, 0", "3, 70"}) {
        check_alu({fmt::format("{}, {};", name, field), model});
      }
    }
  }
}

TEST(AluBits, InsertsFields) {
  for (int n : {32, 64}) {
    const char* reg = n == 32 ? "%r" : "%rd";
    LaneModel model = returns([=](const uint64_t* in) {
      int position = static_cast<int>(in[2] & 0xff), length = static_cast<int>(in[3] & 0xff);
      return word(n, [&](int i) {
        bool inside = i >= position && i - position < length;
        return inside ? bit(in[0], i - position) : bit(in[1], i);
      });
    });
    std::string name = fmt::format("bfi.b{0} {1}0, {1}1, {1}2", n, reg);
    check_alu({name + ", %r5, %r6;",
               model,
               {Fill::kInteger, Fill::kInteger, Fill::kSmall, Fill::kSmall},
               {},
               200});
    for (const char* field :
         {"0, 8", "16, 16", "32, 32", "31, 1", "64, 8", "5, 0", "3, 70", "63, 5"}) {
      check_alu({fmt::format("{}, {};", name, field), model});
    }
  }
}

TEST(AluBits, ExtendsAndMasks) {
  for (bool clamp : {false, true}) {
    const char* mode = clamp ? "clamp" : "wrap";
    for (bool is_signed : {false, true}) {
      check_alu({fmt::format("szext.{}.{} %r0, %r1, %r2;", mode, is_signed ? "s32" : "u32"),
                 returns([=](const uint64_t* in) {
                   int length =
                       static_cast<int>(clamp ? std::min<uint64_t>(in[1], 32) : in[1] % 32);
                   bool sign = is_signed && length > 0 && bit(in[0], length - 1);
                   return word(32, [&](int i) { return i < length ? bit(in[0], i) : sign; });
                 }),
                 {Fill::kInteger, Fill::kSmall}});
    }
    check_alu({fmt::format("bmsk.{}.b32 %r0, %r1, %r2;", mode),
               returns([=](const uint64_t* in) {
                 uint64_t from = clamp ? in[0] : in[0] % 32, length = clamp ? in[1] : in[1] % 32;
                 return word(32, [&](int i) {
                   auto at = static_cast<uint64_t>(i);
                   return at >= from && at - from < length;
                 });
               }),
               {Fill::kSmall, Fill::kSmall}});
  }
}

TEST(AluBits, ShiftsThroughTwoWords) {
  for (bool clamp : {false, true}) {
    for (bool left : {false, true}) {
      LaneModel model = returns([=](const uint64_t* in) {
        int shift = static_cast<int>(clamp ? std::min<uint64_t>(in[2], 32) : in[2] % 32);
        auto joined = [&](int i) { return i < 32 ? bit(in[0], i) : bit(in[1], i - 32); };
        return word(32, [&](int i) { return joined(left ? i + 32 - shift : i + shift); });
      });
      std::string name =
          fmt::format("shf.{}.{}.b32 %r0, %r1, %r2", left ? "l" : "r", clamp ? "clamp" : "wrap");
      check_alu({name + ", %r3;", model, {Fill::kInteger, Fill::kInteger, Fill::kSmall}});
      check_alu({name + ", 7;", model});
    }
  }
}

uint64_t table_function(const uint64_t* in, unsigned table) {
  return word(32, [&](int i) {
    int entry = bit(in[0], i) * 4 + bit(in[1], i) * 2 + bit(in[2], i);
    return bit(table, entry);
  });
}

TEST(AluBits, LooksUpThreeInputs) {
  for (unsigned table = 0; table < 256; ++table) {
    check_alu({fmt::format("lop3.b32 %r0, %r1, %r2, %r3, {};", table),
               returns([=](const uint64_t* in) { return table_function(in, table); }),
               {},
               {},
               8});
  }
}

TEST(AluBits, LooksUpThreeInputsAndTests) {
  for (bool is_or : {false, true}) {
    for (const char* q : {"%p2", "!%p2", "%p1", "1", "0"}) {
      for (unsigned table : {0u, 0x80u, 0x96u, 0x3fu}) {
        LaneModel model = [=](const uint64_t* in, uint64_t* out) {
          out[0] = table_function(in, table);
          bool q_value = in[3] != 0;
          out[1] = is_or ? out[0] != 0 || q_value : out[0] != 0 && q_value;
        };
        std::string sources = fmt::format("%r1, %r2, %r3, {}, {};", table, q);
        std::string name = is_or ? "lop3.or.b32" : "lop3.and.b32";
        check_alu({fmt::format("{} %r0|%p1, {}", name, sources), model});
        check_alu({fmt::format("{} _|%p1, {}", name, sources), model});
      }
    }
  }
}

/// The byte of {b, a} that a selector nibble names.
uint64_t selected_byte(const uint64_t* in, unsigned nibble) {
  unsigned index = nibble & 7;
  uint64_t byte = (index < 4 ? in[0] >> 8 * index : in[1] >> 8 * (index - 4)) & 0xff;
  if ((nibble & 8) == 0) return byte;
  return byte >= 0x80 ? 0xff : 0;
}

TEST(AluBits, PermutesBytes) {
  LaneModel model = returns([](const uint64_t* in) {
    uint64_t result = 0;
    for (int i = 0; i < 4; ++i) result |= selected_byte(in, in[2] >> 4 * i & 15) << 8 * i;
    return result;
  });
  check_alu({"prmt.b32 %r0, %r1, %r2, %r3;", model, {}, {}, 100});
  for (unsigned selector :
       {0x3210u, 0x5410u, 0x7632u, 0x7770u, 0x0123u, 0x4567u, 0xba98u, 0xfedcu, 0x3389u}) {
    check_alu({fmt::format("prmt.b32 %r0, %r1, %r2, {:#x};", selector), model});
    check_alu({fmt::format("prmt.b32 %r0, %r1, 0, {:#x};", selector), model});
  }
}

TEST(AluBits, PermutesBytesInTheNamedModes) {
  // The bytes of {b, a} that results 3, 2, 1, 0 are, for the low bits 0 to 3 of the selector.
  struct Mode {
    const char* name;
    const char* bytes[4];
  };
  constexpr Mode kModes[] = {
      {"f4e", {"3210", "4321", "5432", "6543"}}, {"b4e", {"5670", "6701", "7012", "0123"}},
      {"rc8", {"0000", "1111", "2222", "3333"}}, {"ecl", {"3210", "3211", "3222", "3333"}},
      {"ecr", {"0000", "1110", "2210", "3210"}}, {"rc16", {"1010", "3232", "1010", "3232"}}};
  for (const Mode& mode : kModes) {
    check_alu({fmt::format("prmt.b32.{} %r0, %r1, %r2, %r3;", mode.name),
               returns([=](const uint64_t* in) {
                 uint64_t result = 0;
                 for (const char* byte = mode.bytes[in[2] & 3]; *byte != 0; ++byte) {
                   result = result << 8 | selected_byte(in, static_cast<unsigned>(*byte - '0'));
                 }
                 return result;
               })});
  }
}

}  // namespace
}  // namespace cb::sim
