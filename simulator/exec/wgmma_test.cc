// wgmma against exact sums of small whole numbers. Where the elements lie in
// shared memory is computed as a program that fills a tile does it, element by
// element.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "simulator/exec/matrix_model.h"
#include "simulator/exec/memory_rig.h"

namespace cb::sim {
namespace {

struct Types {
  std::string d, a, b;
  unsigned k;
  std::string tail = "";  ///< behind the types
};
const Types kTypes[] = {
    {"f32", "f16", "f16", 16},
    {"f16", "f16", "f16", 16},
    {"f32", "bf16", "bf16", 16},
    {"f32", "tf32", "tf32", 8},
    {"f32", "e4m3", "e5m2", 32},
    {"f16", "e5m2", "e4m3", 32},
    {"s32", "s8", "u8", 32},
    {"s32", "u8", "s8", 32, ".satfinite"},
    {"s32", "b1", "b1", 256, ".and.popc"},
};

/// How a tile of one operand lies in shared memory.
struct Layout {
  unsigned width = 16;  ///< of the swizzle; 16: none
  bool across = false;  ///< neighbours in memory are neighbours along M or N
  unsigned slice = 0;   ///< which k of a wider tile: the start is 32 bytes further for each
};

/// A matrix of `rows` (M or N) by `k` with the bytes of its tile.
class Operand {
 public:
  Operand(const std::string& type, unsigned rows, unsigned k, const Layout& layout)
      : type_(type), k_(k), layout_(layout), bits_(rows * k) {
    std::mt19937_64 random(rows + k);
    for (auto& bits : bits_) {
      bits = small_number(type, random());
      numbers_.push_back(decode_element(type, bits));
    }
  }
  uint64_t at(unsigned row, unsigned k) const { return bits_[row * k_ + k]; }
  double number(unsigned row, unsigned k) const { return numbers_[row * k_ + k]; }

  uint32_t leading() const {
    if (layout_.across) return layout_.width == 16 ? 4096 : 2048;
    return layout_.width == 16 ? 128 : 16;
  }
  uint32_t stride() const {
    if (layout_.across) return layout_.width == 16 ? 128 : 8 * layout_.width;
    return layout_.width == 16 ? 256 : 8 * layout_.width;
  }
  /// Bytes from the tile's start to an element's first.
  uint32_t offset(unsigned row, unsigned k) const {
    unsigned bits = element_bits(type_);
    uint32_t line, byte, chunk;
    if (layout_.across) {
      unsigned per_width = layout_.width / 2;
      if (layout_.width == 16) {
        return row / 8 * stride() + k / 8 * leading() + k % 8 * 16 + row % 8 * 2;
      }
      line = k % 8;
      byte = row % per_width * 2;
      chunk = row / per_width * leading() + k / 8 * stride();
    } else {
      byte = k * bits / 8 + layout_.slice * 32;
      if (layout_.width == 16) {
        return row / 8 * stride() + byte / 16 * leading() + row % 8 * 16 + byte % 16;
      }
      line = row % 8;
      chunk = row / 8 * stride();
    }
    // The 16-byte pieces of a row change places with the row's number.
    uint32_t turn = line * layout_.width / 128 % (layout_.width / 16);
    return chunk + line * layout_.width + ((byte / 16 ^ turn) * 16 + byte % 16);
  }
  void store(uint64_t tile) const {
    unsigned bits = element_bits(type_);
    for (unsigned i = 0; i < bits_.size(); ++i) {
      auto* byte = reinterpret_cast<uint8_t*>(tile + offset(i / k_, i % k_));
      if (bits >= 8) {
        std::memcpy(byte, &bits_[i], bits / 8);
      } else {
        unsigned shift = i % k_ % 8;
        *byte = static_cast<uint8_t>((*byte & ~(1u << shift)) | bits_[i] << shift);
      }
    }
  }
  uint64_t descriptor(uint32_t tile) const {
    uint64_t mode = layout_.width == 16    ? 0
                    : layout_.width == 128 ? 1
                    : layout_.width == 64  ? 2
                                           : 3;
    uint32_t start = tile + layout_.slice * 32;
    return (start >> 4 & 0x3fff) | uint64_t{leading() >> 4} << 16 | uint64_t{stride() >> 4} << 32 |
           mode << 62;
  }

 private:
  std::string type_;
  unsigned k_;
  Layout layout_;
  std::vector<uint64_t> bits_;
  std::vector<double> numbers_;
};

constexpr uint32_t kTileA = 0, kTileB = 24 << 10;

struct Case {
  Types types;
  unsigned n = 8;
  Layout a = {}, b = {};
  bool fragment_a = false;
  bool adds = true;
  int scale_a = 1, scale_b = 1;
};

std::string list(unsigned first, unsigned count) {
  std::string text = "{";
  for (unsigned i = 0; i < count; ++i) text += fmt::format("{}%r{}", i == 0 ? "" : ", ", first + i);
  return text + "}";
}

std::string text_of(const Case& test) {
  unsigned results = test.n / (test.types.d == "f16" ? 4 : 2);
  std::string text =
      fmt::format("wgmma.mma_async.sync.aligned.m64n{}k{}.{}.{}.{}{} {}, {}, %rd1, %p1", test.n,
                  test.types.k, test.types.d, test.types.a, test.types.b, test.types.tail,
                  list(0, results), test.fragment_a ? list(130, 4) : "%rd0");
  if (test.types.d == "s32") return text + ";";
  text += fmt::format(", {}, {}", test.scale_a, test.scale_b);
  if (element_bits(test.types.a) == 16) {
    if (!test.fragment_a) text += test.a.across ? ", 1" : ", 0";
    text += test.b.across ? ", 1" : ", 0";
  }
  return text + ";";
}

void check(const Case& test) {
  std::string text = text_of(test);
  SCOPED_TRACE(fmt::format("{} A {} {} B {} {}", text.substr(0, 60), test.a.width, test.a.slice,
                           test.b.width, test.b.slice));
  const Types& types = test.types;
  MemoryRig rig(text);
  ASSERT_EQ(rig.refusal(), "");
  Operand a(types.a, 64, types.k, test.a), b(types.b, test.n, types.k, test.b);
  a.store(rig.shared() + kTileA);
  b.store(rig.shared() + kTileB);
  if (!test.fragment_a) rig.set_affine("%rd0", a.descriptor(kTileA), 0);
  rig.set_affine("%rd1", b.descriptor(kTileB), 0);
  LaneValues scale;
  scale.low.fill(test.adds ? 1 : 0);
  rig.set("%p1", scale);
  bool half = types.d == "f16";
  unsigned results = test.n / (half ? 4 : 2);
  for (unsigned warp = 0; warp < 4; ++warp) {
    rig.warpgroup_rank = warp;
    std::mt19937_64 random(warp);
    std::vector<LaneValues> before(results);
    for (unsigned i = 0; i < results; ++i) {
      for (auto& word : before[i].low) {
        word = types.d == "s32" ? random() & 0xffff
               : half ? small_number("f16", random()) | small_number("f16", random()) << 16
                      : small_number("tf32", random());
      }
      rig.set(fmt::format("%r{}", i), before[i]);
    }
    unsigned per = 32 / element_bits(types.a);
    for (unsigned i = 0; test.fragment_a && i < 4; ++i) {
      LaneValues words;
      for (unsigned lane = 0; lane < 32; ++lane) {
        for (unsigned j = 0; j < per; ++j) {
          words.low[lane] |=
              a.at(16 * warp + lane / 4 + i % 2 * 8, lane % 4 * per + j + i / 2 * 4 * per)
              << (j * element_bits(types.a));
        }
      }
      rig.set(fmt::format("%r{}", 130 + i), words);
    }
    ASSERT_TRUE(rig.run()) << (rig.fault ? rig.fault->detail : "");
    for (unsigned reg = 0; reg < results; ++reg) {
      LaneValues after = rig.get(fmt::format("%r{}", reg));
      for (unsigned lane = 0; lane < 32; ++lane) {
        for (unsigned i = 0; i < (half ? 2u : 1u); ++i) {
          unsigned index = half ? 2 * reg + i : reg;
          unsigned row = 16 * warp + lane / 4 + index / 2 % 2 * 8;
          unsigned column = index / 4 * 8 + lane % 4 * 2 + index % 2;
          double sum = 0;
          for (unsigned k = 0; k < types.k; ++k) {
            sum += a.number(row, k) * b.number(column, k);
          }
          sum *= test.scale_a * test.scale_b;
          if (test.adds) sum += decode_element(types.d, before[reg].low[lane] >> (16 * i));
          ASSERT_EQ(decode_element(types.d, after.low[lane] >> (16 * i)), sum)
              << "row " << row << " column " << column;
        }
      }
    }
  }
  EXPECT_EQ(rig.tensor_work.at(0).first.macs, 16 * test.n * types.k);
  EXPECT_TRUE(rig.tensor_work.at(0).first.warpgroup);
}

TEST(Wgmma, AllTypesInAllLayouts) {
  for (const Types& types : kTypes) {
    for (unsigned width : {16u, 32u, 64u, 128u}) {
      unsigned last = std::max(width, 32u) / 32 - 1;
      check({.types = types, .n = 8, .a = {width, false, last}, .b = {width, false, 0}});
      check({.types = types, .n = 48, .a = {width, false, 0}, .b = {width, false, last}});
    }
  }
}

TEST(Wgmma, LinesAlongMAndN) {
  for (const Types& types : {kTypes[0], kTypes[1], kTypes[2]}) {
    for (unsigned width : {16u, 32u, 64u, 128u}) {
      Layout along{128, false, 1}, across{width, true, 0};
      check({.types = types, .n = 64, .a = across, .b = along});
      check({.types = types, .n = 40, .a = along, .b = across});
      check({.types = types, .n = 128, .a = across, .b = across});
    }
  }
}

TEST(Wgmma, RowsOfAInRegisters) {
  for (const Types& types : kTypes) {
    check({.types = types, .n = 32, .b = {128, false, 2}, .fragment_a = true});
  }
}

TEST(Wgmma, AllColumns) {
  for (unsigned n = 8; n <= 256; n += 8) check({.types = kTypes[2], .n = n, .b = {64, false, 1}});
}

TEST(Wgmma, Scales) {
  for (bool adds : {true, false}) {
    for (int scale : {1, -1}) {
      check({.types = kTypes[0], .n = 24, .adds = adds, .scale_a = scale, .scale_b = 1});
      check({.types = kTypes[4], .n = 24, .adds = adds, .scale_a = -1, .scale_b = scale});
    }
    check({.types = kTypes[6], .n = 24, .adds = adds});
    check({.types = kTypes[8], .n = 24, .adds = adds});
  }
}

/// B is kept from one warp to the next, but not when its bytes are others.
TEST(Wgmma, ANewTileAtTheSamePlaceIsSeen) {
  MemoryRig rig(
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r0, %r1, "
      "%r2, %r3}, %rd0, %rd1, 0, 1, 1, "
      "0, 0;");
  Operand a("f16", 64, 16, {});
  a.store(rig.shared() + kTileA);
  rig.set_affine("%rd0", a.descriptor(kTileA), 0);
  rig.set_affine("%rd1", a.descriptor(kTileB), 0);
  std::memset(reinterpret_cast<void*>(rig.shared() + kTileB), 0, 1024);
  ASSERT_TRUE(rig.run());
  EXPECT_EQ(rig.get("%r0").low[0], 0u);
  uint16_t one = 0x3c00;
  std::memcpy(reinterpret_cast<void*>(rig.shared() + kTileB), &one, 2);
  ASSERT_TRUE(rig.run());
  EXPECT_EQ(decode_element("f32", rig.get("%r0").low[0]), decode_element("f16", a.at(0, 0)));
}

TEST(Wgmma, MisuseIsAFinding) {
  MemoryRig rig(
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r0, %r1, "
      "%r2, %r3}, %rd0, %rd1, %p1, 1, 1, "
      "0, 0;");
  Operand a("f16", 64, 16, {});
  auto expect = [&](Finding::Kind kind, const std::string& part) {
    EXPECT_FALSE(rig.run());
    ASSERT_TRUE(rig.fault);
    EXPECT_EQ(rig.fault->kind, kind);
    EXPECT_NE(rig.fault->detail.find(part), std::string::npos) << rig.fault->detail;
  };
  for (const char* reg : {"%r0", "%r1", "%r2", "%r3"}) rig.set_affine(reg, 0, 0);
  LaneValues scale;
  rig.set("%p1", scale);
  rig.set_affine("%rd1", a.descriptor(0), 0);
  rig.set_affine("%rd0", a.descriptor(MemoryRig::kSharedBytes - 256), 0);
  expect(Finding::Kind::kOutOfBounds, "leads to offset");
  rig.set_affine("%rd0", a.descriptor(0), 1);
  expect(Finding::Kind::kIllegalInstruction, "must be the same in all threads");
  rig.set_affine("%rd0", a.descriptor(0), 0);
  scale.low[3] = 1;
  rig.set("%p1", scale);
  expect(Finding::Kind::kIllegalInstruction, "scale-d");
  rig.warpgroup_rank = std::nullopt;
  expect(Finding::Kind::kIllegalInstruction, "four whole warps");
}

TEST(Wgmma, Groups) {
  MemoryRig commit("wgmma.commit_group.sync.aligned;");
  EXPECT_TRUE(commit.run());
  EXPECT_EQ(commit.tensor_commits, 1u);
  MemoryRig wait("wgmma.wait_group.sync.aligned 3;");
  EXPECT_TRUE(wait.run());
  EXPECT_EQ(wait.tensor_waits, std::vector<unsigned>{3});
  MemoryRig more("wgmma.wait_group.sync.aligned 1000;");
  EXPECT_TRUE(more.run());
  EXPECT_EQ(more.tensor_waits, std::vector<unsigned>{TensorGroups::kMostPending});
  EXPECT_TRUE(MemoryRig("wgmma.fence.sync.aligned;").run());
}

TEST(Wgmma, RefusesByName) {
  for (const char* text : {"m64n12k16.f32.f16.f16 {%r0, %r1, %r2, %r3, %r4, %r5}, %rd0, %rd1, "
                           "%p1, 1, 1, 0, 0",
                           "m64n264k16.f32.f16.f16 {%r0, %r1, %r2, %r3}, %rd0, %rd1, %p1, 1, 1, "
                           "0, 0",
                           "m64n40k32.s32.s8.s8 {%r0, %r1, %r2, %r3}, %rd0, %rd1, %p1",
                           "m64n8k16.f32.f16.bf16 {%r0, %r1, %r2, %r3}, %rd0, %rd1, %p1, 1, 1, 0, "
                           "0",
                           "m64n8k8.f32.f16.f16 {%r0, %r1, %r2, %r3}, %rd0, %rd1, %p1, 1, 1, 0, 0",
                           "m64n8k16.f32.f16.f16 {%r0, %r1}, %rd0, %rd1, %p1, 1, 1, 0, 0",
                           "m64n8k16.f32.f16.f16 {%r0, %r1, %r2, %r3}, %rd0, %rd1, %p1, 1, 2, 0, "
                           "0",
                           "m64n8k16.f32.f16.f16 {%r0, %r1, %r2, %r3}, %rd0, %rd1, %p1, 1, 1",
                           "m64n8k8.f32.tf32.tf32 {%r0, %r1, %r2, %r3}, %rd0, %rd1, %p1, 1, 1, 0, "
                           "1",
                           "m64n8k256.s32.b1.b1.xor.popc {%r0, %r1, %r2, %r3}, %rd0, %rd1, %p1",
                           "m64n99999999999k16.f32.f16.f16 {%r0, %r1, %r2, %r3}, %rd0, %rd1, %p1, "
                           "1, 1, 0, 0"}) {
    EXPECT_NE(MemoryRig(fmt::format("wgmma.mma_async.sync.aligned.{};", text)).refusal(), "")
        << text;
  }
  EXPECT_NE(MemoryRig("wgmma.wait_group.sync.aligned %r0;").refusal(), "");
}

}  // namespace
}  // namespace cb::sim
