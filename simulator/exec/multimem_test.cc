// multimem instructions on three copies, against sums computed one number at a time.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "simulator/exec/memory_rig.h"
#include "simulator/exec/number_format.h"

namespace cb::sim {
namespace {

constexpr uint64_t kBytes = 1024;
constexpr int kCopies = 3;

/// A rig with a buffer on each of three devices behind one address.
struct Multicast {
  explicit Multicast(const std::string& text) : rig(text) {
    std::vector<const Allocation*> members;
    for (int k = 0; k < kCopies; ++k) {
      copies.push_back(rig.allocate(k, kBytes));
      members.push_back(rig.memory().find(copies.back()));
    }
    base = rig.memory().allocate_multicast(members)->base;
  }
  template <typename T>
  T& at(int copy, uint64_t index) {
    return reinterpret_cast<T*>(copies[static_cast<size_t>(copy)])[index];
  }
  MemoryRig rig;
  std::vector<uint64_t> copies;
  uint64_t base = 0;
};

double value_of(uint64_t bits, const NumberFormat& format) {
  Number number = Number::of_bits(bits, format);
  double value = std::ldexp(static_cast<double>(number.mantissa), number.exponent);
  return number.negative ? -value : value;
}

struct Forms {
  int32_t stride;  ///< of lanes; 0: scattered
  uint32_t mask;
};
constexpr Forms kForms[] = {{16, kAllLanes}, {16, 0xffff}, {0, kAllLanes}, {32, 0x0f0f0f0f}};

/// Offsets of the lanes in steps of `bytes`, set as the rig's address register.
std::array<uint64_t, kLanes> set_addresses(Multicast& m, const Forms& form, uint64_t bytes) {
  std::array<uint64_t, kLanes> offsets;
  LaneValues addresses;
  for (uint64_t i = 0; i < kLanes; ++i) {
    offsets[i] = form.stride == 0 ? (i * 5 % 32) * bytes
                                  : i * bytes * static_cast<uint64_t>(form.stride) / 16;
    addresses.low[i] = m.base + offsets[i];
  }
  if (form.stride == 0) {
    m.rig.set("%rd0", addresses);
  } else {
    m.rig.set_affine("%rd0", m.base, static_cast<int32_t>(offsets[1]));
  }
  m.rig.set_mask(form.mask, form.mask == kAllLanes);
  return offsets;
}

TEST(Multimem, SumsOfF32) {
  Multicast m("multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {%f1, %f2, %f3, %f4}, [%rd0];");
  ASSERT_EQ(m.rig.refusal(), "");
  for (int k = 0; k < kCopies; ++k) {
    for (uint64_t i = 0; i < kBytes / 4; ++i) m.at<float>(k, i) = static_cast<float>(i * 10 + k);
  }
  for (const Forms& form : kForms) {
    auto offsets = set_addresses(m, form, 16);
    ASSERT_TRUE(m.rig.run()) << m.rig.fault->detail;
    for (uint64_t e = 0; e < 4; ++e) {
      LaneValues result = m.rig.get(fmt::format("%f{}", e + 1));
      for (uint64_t i = 0; i < kLanes; ++i) {
        if ((form.mask >> i & 1) == 0) continue;
        uint64_t index = offsets[i] / 4 + e;
        auto expected = static_cast<float>(3 * 10 * index + 3);
        EXPECT_EQ(result.low[i], std::bit_cast<uint32_t>(expected)) << i;
      }
    }
  }
}

void check_half_sum(bool bf16, bool wide) {
  std::string type = bf16 ? "bf16x2" : "f16x2";
  Multicast m(fmt::format("multimem.ld_reduce.relaxed.sys.global.add{}.v2.{} {{%r1, %r2}}, [%rd0];",
                          wide ? ".acc::f32" : "", type));
  ASSERT_EQ(m.rig.refusal(), "");
  const NumberFormat& format = bf16 ? kBf16Format : kF16Format;
  std::mt19937 random(5);
  for (int k = 0; k < kCopies; ++k) {
    for (uint64_t i = 0; i < kBytes / 2; ++i) {
      m.at<uint16_t>(k, i) = static_cast<uint16_t>((random() & 0x83ff) | 0x3c00);
    }
  }
  for (const Forms& form : kForms) {
    auto offsets = set_addresses(m, form, 8);
    ASSERT_TRUE(m.rig.run()) << m.rig.fault->detail;
    for (uint64_t e = 0; e < 4; ++e) {
      LaneValues result = m.rig.get(fmt::format("%r{}", e / 2 + 1));
      for (uint64_t i = 0; i < kLanes; ++i) {
        if ((form.mask >> i & 1) == 0) continue;
        uint64_t index = offsets[i] / 2 + e;
        double sum = value_of(m.at<uint16_t>(0, index), format);
        for (int k = 1; k < kCopies; ++k) {
          sum += value_of(m.at<uint16_t>(k, index), format);
          if (!wide) sum = value_of(round_double(sum, 0, format, Rounding::kNearest), format);
        }
        uint64_t expected = round_double(sum, 0, format, Rounding::kNearest);
        EXPECT_EQ(result.low[i] >> (16 * (e & 1)) & 0xffff, expected) << i << " " << e;
      }
    }
  }
}

TEST(Multimem, SumsOfHalvesRoundOnceOrEachTime) {
  for (bool bf16 : {false, true}) {
    for (bool wide : {false, true}) check_half_sum(bf16, wide);
  }
}

TEST(Multimem, ExtremesAndBits) {
  struct Case {
    const char* text;
    uint64_t (*model)(uint64_t, uint64_t);
  };
  const Case cases[] = {
      {"min.u64", [](uint64_t a, uint64_t b) { return std::min(a, b); }},
      {"max.s64",
       [](uint64_t a, uint64_t b) {
         return static_cast<uint64_t>(std::max(static_cast<int64_t>(a), static_cast<int64_t>(b)));
       }},
      {"and.b64", [](uint64_t a, uint64_t b) { return a & b; }},
      {"or.b64", [](uint64_t a, uint64_t b) { return a | b; }},
      {"xor.b64", [](uint64_t a, uint64_t b) { return a ^ b; }},
      {"add.u64", [](uint64_t a, uint64_t b) { return a + b; }},
  };
  for (const Case& test : cases) {
    Multicast m(fmt::format("multimem.ld_reduce.acquire.sys.global.{} %rd1, [%rd0];", test.text));
    ASSERT_EQ(m.rig.refusal(), "");
    for (const Forms& form : kForms) {
      auto offsets = set_addresses(m, form, 8);
      ASSERT_TRUE(m.rig.run());
      for (uint64_t i = 0; i < kLanes; ++i) {
        if ((form.mask >> i & 1) == 0) continue;
        uint64_t index = offsets[i] / 8;
        uint64_t expected = m.at<uint64_t>(0, index);
        for (int k = 1; k < kCopies; ++k) expected = test.model(expected, m.at<uint64_t>(k, index));
        EXPECT_EQ(m.rig.get("%rd1").low[i], expected) << test.text;
      }
    }
  }
}

TEST(Multimem, MinimaOfHalvesPreferNumbers) {
  Multicast m("multimem.ld_reduce.relaxed.sys.global.min.f16x2 %r1, [%rd0];");
  ASSERT_EQ(m.rig.refusal(), "");
  m.at<uint32_t>(0, 0) = 0x7e003c00;  // NaN, 1
  m.at<uint32_t>(1, 0) = 0x3c004000;  // 1, 2
  m.at<uint32_t>(2, 0) = 0x40008000;  // 2, -0
  m.rig.set_affine("%rd0", m.base, 0);
  ASSERT_TRUE(m.rig.run());
  EXPECT_EQ(m.rig.get("%r1").low[0], 0x3c008000);
}

TEST(Multimem, StoresReachAllCopies) {
  Multicast m("multimem.st.relaxed.sys.global.v4.f32 [%rd0], {%f1, %f2, %f3, %f4};");
  ASSERT_EQ(m.rig.refusal(), "");
  for (const Forms& form : kForms) {
    for (uint32_t e = 0; e < 4; ++e) {
      LaneValues values;
      for (uint32_t i = 0; i < kLanes; ++i) values.low[i] = i * 4 + e + form.mask % 1000;
      m.rig.set(fmt::format("%f{}", e + 1), values);
    }
    for (uint64_t copy : m.copies) std::memset(reinterpret_cast<void*>(copy), 0xff, kBytes);
    auto offsets = set_addresses(m, form, 16);
    m.rig.wakes.clear();
    ASSERT_TRUE(m.rig.run());
    EXPECT_FALSE(m.rig.wakes.empty());
    for (int k = 0; k < kCopies; ++k) {
      for (uint64_t i = 0; i < kLanes; ++i) {
        for (uint64_t e = 0; e < 4; ++e) {
          bool active = (form.mask >> i & 1) != 0;
          uint32_t expected =
              active ? static_cast<uint32_t>(i * 4 + e + form.mask % 1000) : 0xffffffff;
          EXPECT_EQ(m.at<uint32_t>(k, offsets[i] / 4 + e), expected);
        }
      }
    }
  }
}

TEST(Multimem, ReductionsReachAllCopies) {
  Multicast m("multimem.red.release.sys.global.add.u32 [%rd0], %r1;");
  ASSERT_EQ(m.rig.refusal(), "");
  uint32_t before[kCopies];
  for (int k = 0; k < kCopies; ++k) before[k] = m.at<uint32_t>(k, 2);
  m.rig.set_affine("%r1", 1, 1);
  m.rig.set_affine("%rd0", m.base + 8, 0);
  ASSERT_TRUE(m.rig.run());
  for (int k = 0; k < kCopies; ++k) EXPECT_EQ(m.at<uint32_t>(k, 2), before[k] + 32 * 33 / 2);
  EXPECT_EQ(m.rig.spec().flags, kOpOrdered | kOpMemory | kOpSideEffect | kOpRelease);
}

TEST(Multimem, EndsAreExactAndFreedCopiesAreFound) {
  Multicast m("multimem.st.global.u32 [%rd0], %r1;");
  m.rig.set_affine("%r1", 1, 0);
  m.rig.set_affine("%rd0", m.base + kBytes - 128, 4);
  EXPECT_TRUE(m.rig.run());
  m.rig.set_affine("%rd0", m.base + kBytes - 124, 4);
  ASSERT_FALSE(m.rig.run());
  EXPECT_EQ(m.rig.fault->kind, Finding::Kind::kOutOfBounds);
  EXPECT_EQ(m.rig.fault->lane, 31);
  m.rig.memory().free(1, m.copies[1], Allocation::Kind::kSymmetric);
  m.rig.set_affine("%rd0", m.base, 4);
  ASSERT_FALSE(m.rig.run());
  EXPECT_EQ(m.rig.fault->kind, Finding::Kind::kUseAfterFree);
}

TEST(Multimem, TellsTheTimingModel) {
  Multicast m("multimem.ld_reduce.relaxed.sys.global.add.u32 %r1, [%rd0];");
  m.rig.context().timed = true;
  m.rig.set_affine("%rd0", m.base, 4);
  ASSERT_TRUE(m.rig.run());
  EXPECT_EQ(m.rig.context().access.target, MemoryAccess::Target::kMulticast);
  EXPECT_EQ(m.rig.context().access.sectors, 4u);
  EXPECT_EQ(m.rig.context().access.address, m.base);
}

}  // namespace
}  // namespace cb::sim
