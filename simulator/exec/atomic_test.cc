// atom and red against a model that takes the lanes in order, for each operation and type, in
// global, shared and generic memory.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <random>
#include <vector>

#include "simulator/exec/memory_rig.h"
#include "simulator/exec/number_format.h"

namespace cb::sim {
namespace {

/// New value from the old one, the operand and the second operand of cas.
using Model = std::function<uint64_t(uint64_t old, uint64_t b, uint64_t c)>;

struct Case {
  const char* operation;
  const char* type;
  const char* reg;
  unsigned bytes;
  Model model;
};

template <typename T>
Model integer(T (*function)(T, T)) {
  return [=](uint64_t old, uint64_t b, uint64_t) {
    return static_cast<uint64_t>(function(static_cast<T>(old), static_cast<T>(b)));
  };
}

double value_of(uint64_t bits, const NumberFormat& format) {
  Number number = Number::of_bits(bits, format);
  double value = std::ldexp(static_cast<double>(number.mantissa), number.exponent);
  return number.negative ? -value : value;
}
uint64_t bits_of(double value, const NumberFormat& format) {
  return round_double(value, 0, format, Rounding::kNearest);
}
Model sum(const NumberFormat& format) {
  return [=](uint64_t old, uint64_t b, uint64_t) {
    return bits_of(value_of(old, format) + value_of(b, format), format);
  };
}
Model on_pairs(const Model& model) {
  return [=](uint64_t old, uint64_t b, uint64_t) {
    return model(old & 0xffff, b & 0xffff, 0) | model(old >> 16 & 0xffff, b >> 16 & 0xffff, 0)
                                                    << 16;
  };
}

template <typename T>
T add(T a, T b) {
  return static_cast<T>(a + b);
}
template <typename T>
T least(T a, T b) {
  return std::min(a, b);
}
template <typename T>
T most(T a, T b) {
  return std::max(a, b);
}
uint64_t exchange(uint64_t, uint64_t b, uint64_t) { return b; }
uint64_t compare(uint64_t old, uint64_t b, uint64_t c) { return old == b ? c : old; }

std::vector<Case> cases() {
  return {
      {"add", "u32", "%r", 4, integer<uint32_t>(add)},
      {"add", "s32", "%r", 4, integer<uint32_t>(add)},
      {"add", "u64", "%rd", 8, integer<uint64_t>(add)},
      {"min", "u32", "%r", 4, integer<uint32_t>(least)},
      {"min", "s32", "%r", 4, integer<int32_t>(least)},
      {"min", "u64", "%rd", 8, integer<uint64_t>(least)},
      {"min", "s64", "%rd", 8, integer<int64_t>(least)},
      {"max", "u32", "%r", 4, integer<uint32_t>(most)},
      {"max", "s32", "%r", 4, integer<int32_t>(most)},
      {"max", "u64", "%rd", 8, integer<uint64_t>(most)},
      {"max", "s64", "%rd", 8, integer<int64_t>(most)},
      {"and", "b32", "%r", 4, [](uint64_t a, uint64_t b, uint64_t) { return a & b; }},
      {"or", "b64", "%rd", 8, [](uint64_t a, uint64_t b, uint64_t) { return a | b; }},
      {"xor", "b32", "%r", 4, [](uint64_t a, uint64_t b, uint64_t) { return a ^ b; }},
      {"exch", "b32", "%r", 4, exchange},
      {"exch", "b64", "%rd", 8, exchange},
      {"cas", "b16", "%h", 2, compare},
      {"cas", "b32", "%r", 4, compare},
      {"cas", "b64", "%rd", 8, compare},
      {"inc", "u32", "%r", 4,
       [](uint64_t old, uint64_t b, uint64_t) { return old >= b ? 0 : old + 1; }},
      {"dec", "u32", "%r", 4,
       [](uint64_t old, uint64_t b, uint64_t) { return old == 0 || old > b ? b : old - 1; }},
      {"add", "f32", "%f", 4, sum(kF32Format)},
      {"add", "f64", "%fd", 8, sum(kF64Format)},
      {"add.noftz", "f16", "%h", 2, sum(kF16Format)},
      {"add.noftz", "bf16", "%h", 2, sum(kBf16Format)},
      {"add.noftz", "f16x2", "%r", 4, on_pairs(sum(kF16Format))},
      {"add.noftz", "bf16x2", "%r", 4, on_pairs(sum(kBf16Format))},
  };
}

/// A number of ordinary size in every format, so that sums are finite.
uint64_t operand(std::mt19937_64& random, unsigned bytes) {
  uint64_t value = (random() & 0x83ff83ff83ff83ff) | 0x3c003c003c003c00;
  return bytes == 8 ? value : value & ((uint64_t{1} << (8 * bytes)) - 1);
}

constexpr const char* kSpaces[] = {".global", ".shared", ""};
constexpr uint64_t kElements = 8;

void check(const Case& test, const char* space, bool returns, std::mt19937_64& random) {
  bool compares = std::string_view(test.operation) == "cas";
  std::string text =
      fmt::format("{}{}.{}.{} {}[%rd0], {}2{};", returns ? "atom" : "red", space, test.operation,
                  test.type, returns ? fmt::format("{}1, ", test.reg) : "", test.reg,
                  compares ? fmt::format(", {}3", test.reg) : "");
  MemoryRig rig(text);
  ASSERT_EQ(rig.refusal(), "") << text;
  bool shared = std::string_view(space) == ".shared";
  uint64_t base = shared ? rig.shared() : rig.allocate(0, kElements * test.bytes);
  for (uint32_t mask : {kAllLanes, 0x1u, 0x00f0f0ffu}) {
    auto* memory = reinterpret_cast<uint8_t*>(base);
    std::array<uint64_t, kElements> values;
    for (uint64_t k = 0; k < kElements; ++k) {
      values[k] = operand(random, test.bytes);
      std::memcpy(memory + k * test.bytes, &values[k], test.bytes);
    }
    LaneValues addresses, b, c, before, expected;
    for (uint64_t i = 0; i < kLanes; ++i) {
      uint64_t element = random() % kElements;
      addresses.low[i] = (shared ? 0 : base) + element * test.bytes;
      // Half of the comparisons succeed, if no earlier lane changed the value.
      b.low[i] = compares && random() % 2 == 0 ? values[element] : operand(random, test.bytes);
      c.low[i] = operand(random, test.bytes);
      before.low[i] = operand(random, test.bytes);
    }
    expected = before;
    for (uint64_t i = 0; i < kLanes; ++i) {
      if ((mask >> i & 1) == 0) continue;
      uint64_t& value = values[(addresses.low[i] - (shared ? 0 : base)) / test.bytes];
      expected.low[i] = value;
      value = test.model(value, b.low[i], c.low[i]);
      if (test.bytes < 8) value &= (uint64_t{1} << (8 * test.bytes)) - 1;
    }
    rig.set("%rd0", addresses);
    rig.set(fmt::format("{}2", test.reg), b);
    if (compares) rig.set(fmt::format("{}3", test.reg), c);
    if (returns) rig.set(fmt::format("{}1", test.reg), before);
    rig.set_mask(mask, false);
    ASSERT_TRUE(rig.run()) << text << rig.fault->detail;
    for (uint64_t k = 0; k < kElements; ++k) {
      uint64_t actual = 0;
      std::memcpy(&actual, memory + k * test.bytes, test.bytes);
      ASSERT_EQ(actual, values[k]) << text << " element " << k;
    }
    if (!returns) continue;
    ASSERT_EQ(rig.get(fmt::format("{}1", test.reg)).low, expected.low) << text;
  }
}

TEST(Atomic, LanesTakeTheirTurns) {
  std::mt19937_64 random(1);
  for (const Case& test : cases()) {
    for (const char* space : kSpaces) {
      for (bool returns : {true, false}) {
        std::string_view operation = test.operation;
        if (!returns && (operation == "exch" || operation == "cas")) continue;
        check(test, space, returns, random);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Atomic, SumsInGlobalMemoryFlushSubnormals) {
  for (bool shared : {false, true}) {
    MemoryRig rig(shared ? "red.shared.add.f32 [%rd0], %f1;" : "red.global.add.f32 [%rd0], %f1;");
    uint64_t base = shared ? rig.shared() : rig.allocate(0, 64);
    uint32_t old = 0x00000005;
    std::memcpy(reinterpret_cast<void*>(base), &old, 4);
    rig.set_affine("%rd0", shared ? 0 : base, 0);
    rig.set_affine("%f1", 0x00000003, 0);
    rig.set_mask(1, false);
    ASSERT_TRUE(rig.run());
    std::memcpy(&old, reinterpret_cast<void*>(base), 4);
    EXPECT_EQ(old, shared ? 8u : 0u);
  }
}

TEST(Atomic, WordsOf128Bits) {
  MemoryRig rig("atom.global.cas.b128 %q1, [%rd0], %q2, %q3;");
  uint64_t base = rig.allocate(0, 64);
  uint64_t before[2];
  std::memcpy(before, reinterpret_cast<void*>(base), 16);
  LaneValues b, c, d;
  for (size_t i = 0; i < kLanes; ++i) {
    b.low[i] = before[0];
    b.high[i] = before[1] + (i == 3 ? 0 : 1);
    c.low[i] = 70 + i;
    c.high[i] = 90;
    d.low[i] = d.high[i] = 4;
  }
  rig.set("%q1", d);
  rig.set("%q2", b);
  rig.set("%q3", c);
  rig.set_affine("%rd0", base, 0);
  rig.set_mask(0x1e, false);
  ASSERT_TRUE(rig.run());
  uint64_t after[2];
  std::memcpy(after, reinterpret_cast<void*>(base), 16);
  EXPECT_EQ(after[0], 73u);
  EXPECT_EQ(after[1], 90u);
  LaneValues old = rig.get("%q1");
  EXPECT_EQ(old.low[0], 4u);
  EXPECT_EQ(old.low[3], before[0]);
  EXPECT_EQ(old.high[3], before[1]);
  EXPECT_EQ(old.low[4], 73u);
}

TEST(Atomic, VectorsAreAtomicsOfTheirElements) {
  MemoryRig rig("red.global.v4.f32.add [%rd0], {%f1, %f2, %f3, %f4};");
  ASSERT_EQ(rig.refusal(), "");
  uint64_t base = rig.allocate(0, 16);
  std::memset(reinterpret_cast<void*>(base), 0, 16);
  rig.set_affine("%rd0", base, 0);
  for (uint32_t k = 0; k < 4; ++k) {
    rig.set_affine(fmt::format("%f{}", k + 1), std::bit_cast<uint32_t>(1.0f + k), 0);
  }
  ASSERT_TRUE(rig.run());
  for (uint32_t k = 0; k < 4; ++k) {
    EXPECT_EQ(reinterpret_cast<float*>(base)[k], 32 * (1.0f + static_cast<float>(k)));
  }
  MemoryRig pair("atom.global.v2.f32.add {%f1, %f2}, [%rd0], {%f3, %f4};");
  base = pair.allocate(0, 8);
  std::memset(reinterpret_cast<void*>(base), 0, 8);
  pair.set_affine("%rd0", base, 0);
  pair.set_affine("%f3", std::bit_cast<uint32_t>(1.0f), 0);
  pair.set_affine("%f4", std::bit_cast<uint32_t>(2.0f), 0);
  ASSERT_TRUE(pair.run());
  EXPECT_EQ(pair.get("%f2").low[31], std::bit_cast<uint32_t>(62.0f));
}

Model extreme(const NumberFormat& format, bool is_max) {
  return [=](uint64_t old, uint64_t b, uint64_t) {
    return (value_of(old, format) < value_of(b, format)) == is_max ? b : old;
  };
}

/// atom and red of `count` elements, which lanes do in order, element by element.
void check_vector(const Case& test, unsigned count, bool returns, std::mt19937_64& random) {
  auto list = [&](unsigned first) {
    std::string text = fmt::format("{{{}{}", test.reg, first);
    for (unsigned k = 1; k < count; ++k) text += fmt::format(", {}{}", test.reg, first + k);
    return text + "}";
  };
  std::string text =
      fmt::format("{}.global.v{}.{}.{} {}[%rd0], {};", returns ? "atom" : "red", count, test.type,
                  test.operation, returns ? list(1) + ", " : "", list(1 + count));
  MemoryRig rig(text);
  ASSERT_EQ(rig.refusal(), "") << text;
  unsigned bytes = count * test.bytes;
  uint64_t base = rig.allocate(0, 4 * bytes);
  LaneValues addresses;
  std::vector<LaneValues> in(count), expected(count);
  std::vector<uint64_t> memory(4 * count);
  for (size_t k = 0; k < memory.size(); ++k) {
    memory[k] = operand(random, test.bytes);
    std::memcpy(reinterpret_cast<uint8_t*>(base) + k * test.bytes, &memory[k], test.bytes);
  }
  for (size_t i = 0; i < kLanes; ++i) {
    size_t vector = random() % 4;
    addresses.low[i] = base + vector * bytes;
    for (unsigned k = 0; k < count; ++k) {
      in[k].low[i] = operand(random, test.bytes);
      uint64_t& value = memory[vector * count + k];
      expected[k].low[i] = value;
      value = test.model(value, in[k].low[i], 0);
    }
  }
  rig.set("%rd0", addresses);
  for (unsigned k = 0; k < count; ++k) rig.set(fmt::format("{}{}", test.reg, 1 + count + k), in[k]);
  rig.set_mask(kAllLanes, true);
  ASSERT_TRUE(rig.run()) << text;
  for (size_t k = 0; k < memory.size(); ++k) {
    uint64_t actual = 0;
    std::memcpy(&actual, reinterpret_cast<uint8_t*>(base) + k * test.bytes, test.bytes);
    ASSERT_EQ(actual, memory[k]) << text << " element " << k;
  }
  for (unsigned k = 0; returns && k < count; ++k) {
    ASSERT_EQ(rig.get(fmt::format("{}{}", test.reg, 1 + k)).low, expected[k].low) << text;
  }
}

TEST(Atomic, VectorsOfEachTypeAndLength) {
  std::mt19937_64 random(2);
  auto check_all = [&](const Case& test, std::initializer_list<unsigned> counts) {
    for (unsigned count : counts) {
      for (bool returns : {true, false}) check_vector(test, count, returns, random);
    }
  };
  check_all({"add", "f32", "%f", 4, sum(kF32Format)}, {2, 4});
  for (bool brain : {false, true}) {
    const NumberFormat& format = brain ? kBf16Format : kF16Format;
    const std::pair<const char*, Model> kOperations[] = {{"add.noftz", sum(format)},
                                                         {"min.noftz", extreme(format, false)},
                                                         {"max.noftz", extreme(format, true)}};
    for (const auto& [operation, model] : kOperations) {
      check_all({operation, brain ? "bf16" : "f16", "%h", 2, model}, {2, 4, 8});
      check_all({operation, brain ? "bf16x2" : "f16x2", "%r", 4, on_pairs(model)}, {2, 4});
    }
  }
}

TEST(Atomic, OnlyChangesSpoilAWaitLoopAndWakeWaiters) {
  MemoryRig rig("atom.global.cas.b32 %r1, [%rd0], %r2, %r3;");
  uint64_t base = rig.allocate(0, 16);
  auto* word = reinterpret_cast<uint32_t*>(base);
  *word = 1;
  SpinRecorder recorder;
  rig.context().recorder = &recorder;
  rig.set_affine("%rd0", base, 0);
  rig.set_affine("%r2", 0, 0);
  rig.set_affine("%r3", 1, 0);
  rig.set_mask(1, false);
  ASSERT_TRUE(rig.run());
  EXPECT_FALSE(recorder.spoiled());
  EXPECT_EQ(recorder.reads().size(), 1u);
  EXPECT_TRUE(rig.wakes.empty());
  *word = 0;
  ASSERT_TRUE(rig.run());
  EXPECT_TRUE(recorder.spoiled());
  EXPECT_EQ(rig.wakes.size(), 1u);
}

TEST(Atomic, FlagsSayOrderAndResults) {
  auto flags = [](const char* text) { return MemoryRig(text).spec().flags; };
  EXPECT_EQ(flags("atom.global.add.u32 %r1, [%rd0], 1;"),
            kOpOrdered | kOpMemory | kOpWaits | kOpLoad);
  EXPECT_EQ(flags("atom.acq_rel.sys.global.add.u32 %r1, [%rd0], 1;"),
            kOpOrdered | kOpMemory | kOpWaits | kOpLoad | kOpAcquire | kOpRelease);
  EXPECT_EQ(flags("red.release.sys.global.add.u32 [%rd0], 1;"),
            kOpOrdered | kOpMemory | kOpSideEffect | kOpRelease);
}

}  // namespace
}  // namespace cb::sim
