// Warp-wide operations, barriers, address conversions, fences and clocks.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "simulator/exec/memory_rig.h"

namespace cb::sim {
namespace {

constexpr uint32_t kMasks[] = {kAllLanes, 0xff, 0x80000001, 0x5a5a1234, 1u << 13};

LaneValues random_words(std::mt19937_64& random, uint64_t limit) {
  LaneValues values;
  for (uint64_t& lane : values.low) lane = random() % limit;
  return values;
}

bool active(uint32_t mask, size_t lane) { return (mask >> lane & 1) != 0; }

/// The pseudo code of the PTX manual.
uint32_t shuffle_model(const std::string& mode, uint32_t lane, uint32_t b, uint32_t c,
                       bool& in_range) {
  int bval = static_cast<int>(b & 31), cval = static_cast<int>(c & 31);
  int segment = static_cast<int>(c >> 8 & 31), own = static_cast<int>(lane);
  int max_lane = (own & segment) | (cval & ~segment);
  int min_lane = own & segment;
  int j = 0;
  if (mode == "up") {
    j = own - bval;
    in_range = j >= max_lane;
  } else if (mode == "down") {
    j = own + bval;
    in_range = j <= max_lane;
  } else if (mode == "bfly") {
    j = own ^ bval;
    in_range = j <= max_lane;
  } else {
    j = min_lane | (bval & ~segment);
    in_range = j <= max_lane;
  }
  return in_range ? static_cast<uint32_t>(j) : lane;
}

TEST(Shuffle, AllModesFollowTheManual) {
  std::mt19937_64 random(1);
  for (const char* mode : {"idx", "up", "down", "bfly"}) {
    for (bool by_register : {false, true}) {
      MemoryRig rig(fmt::format("shfl.sync.{}.b32 %r1|%p1, %r2, %r3, %r4, {};", mode,
                                by_register ? "%r5" : "0xffffffff"));
      ASSERT_EQ(rig.refusal(), "");
      if (by_register) rig.set_affine("%r5", 0xffffffff, 0);
      for (uint32_t mask : kMasks) {
        for (uint32_t clamp : {0x1fu, 0u, 0x181fu, 0x1c00u, 0x1807u}) {
          LaneValues value = random_words(random, 1 << 20), b = random_words(random, 40);
          LaneValues before = random_words(random, 100);
          rig.set("%r1", before);
          rig.set("%r2", value);
          rig.set("%r3", b);
          rig.set_affine("%r4", clamp, 0);
          rig.set("%p1", LaneValues{});
          rig.set_mask(mask, false);
          ASSERT_TRUE(rig.run());
          LaneValues result = rig.get("%r1"), ranges = rig.get("%p1");
          for (uint32_t i = 0; i < kLanes; ++i) {
            if (!active(mask, i)) {
              EXPECT_EQ(result.low[i], before.low[i]);
              EXPECT_EQ(ranges.low[i], 0u);
              continue;
            }
            bool in_range = false;
            uint32_t from =
                shuffle_model(mode, i, static_cast<uint32_t>(b.low[i]), clamp, in_range);
            EXPECT_EQ(result.low[i], value.low[from]) << mode << " " << i;
            EXPECT_EQ(ranges.low[i], in_range);
          }
        }
      }
    }
  }
}

TEST(Shuffle, BroadcastsAreUniform) {
  MemoryRig rig("shfl.sync.idx.b32 %r1, %r2, 7, 31, -1;");
  rig.set_affine("%r2", 100, 3);
  ASSERT_TRUE(rig.run());
  EXPECT_TRUE(rig.meta("%r1").uniform());
  EXPECT_EQ(rig.get("%r1").low[0], 121u);
}

TEST(Vote, OverMembers) {
  for (uint32_t value : {0u, kAllLanes, 0x0000ff00u, 0x12345678u}) {
    for (const char* kind : {"all", "any", "uni"}) {
      MemoryRig rig(fmt::format("vote.sync.{}.pred %p1, !%p2, %r3;", kind));
      ASSERT_EQ(rig.refusal(), "");
      LaneValues votes, tiles;
      // Two tiles in one warp.
      for (size_t i = 0; i < kLanes; ++i) {
        votes.low[i] = value >> i & 1;
        tiles.low[i] = i < 16 ? 0xffff : 0xffff0000;
      }
      rig.set("%p2", votes);
      rig.set("%r3", tiles);
      ASSERT_TRUE(rig.run());
      EXPECT_EQ(rig.gathered.back(), kAllLanes);
      for (size_t i = 0; i < kLanes; ++i) {
        uint32_t tile = i < 16 ? 0xffff : 0xffff0000, set = ~value & tile;
        std::string_view name = kind;
        bool expected = name == "all"   ? set == tile
                        : name == "any" ? set != 0
                                        : set == 0 || set == tile;
        EXPECT_EQ(rig.get("%p1").low[i], expected) << kind << i;
      }
    }
  }
}

TEST(Vote, BallotsCountActiveLanesOnly) {
  MemoryRig rig("vote.sync.ballot.b32 %r1, %p2, 0x00ff00ff;");
  LaneValues votes;
  for (size_t i = 0; i < kLanes; ++i) votes.low[i] = i % 3 == 0;
  rig.set("%p2", votes);
  rig.set_affine("%r1", 5, 0);
  rig.set_mask(0x00ff00ff, false);
  ASSERT_TRUE(rig.run());
  EXPECT_EQ(rig.get("%r1").low[0], 0x49249249u & 0x00ff00ff);
  EXPECT_EQ(rig.get("%r1").low[9], 5u);
  rig.set_mask(0x01ff00ff, false);
  ASSERT_FALSE(rig.run());
  EXPECT_EQ(rig.fault->kind, Finding::Kind::kIllegalInstruction);
  EXPECT_EQ(rig.fault->lane, 24);
}

TEST(Exchange, WaitsForLanesThatAreElsewhere) {
  MemoryRig rig("vote.sync.any.pred %p1, %p2, -1;");
  rig.set("%p2", LaneValues{});
  rig.gather_answer = false;
  rig.set_mask(0xff, false);
  EXPECT_FALSE(rig.run());
  EXPECT_FALSE(rig.fault);
  EXPECT_EQ(rig.gathered.back(), kAllLanes);
}

template <typename T>
void check_match(const std::string& type, const std::string& reg) {
  std::mt19937_64 random(3);
  MemoryRig any(fmt::format("match.any.sync.{} %r1, {}2, -1;", type, reg));
  MemoryRig all(fmt::format("match.all.sync.{} %r1|%p1, {}2, %r3;", type, reg));
  ASSERT_EQ(all.refusal(), "");
  for (uint32_t mask : kMasks) {
    LaneValues values = random_words(random, 3);
    for (uint64_t& value : values.low) value <<= sizeof(T) * 8 - 4;
    any.set(reg + "2", values);
    any.set_mask(mask, false);
    any.set_affine("%r1", 0, 0);
    ASSERT_TRUE(any.run());
    all.set(reg + "2", values);
    all.set_affine("%r3", mask, 0);
    all.set_mask(mask, false);
    all.set_affine("%r1", 77, 0);
    ASSERT_TRUE(all.run());
    bool equal = true;
    uint64_t first = values.low[static_cast<size_t>(std::countr_zero(mask))];
    for (size_t i = 0; i < kLanes; ++i) equal &= !active(mask, i) || values.low[i] == first;
    for (size_t i = 0; i < kLanes; ++i) {
      if (!active(mask, i)) continue;
      uint32_t expected = 0;
      for (size_t k = 0; k < kLanes; ++k) {
        if (active(mask, k) && values.low[k] == values.low[i]) expected |= 1u << k;
      }
      EXPECT_EQ(any.get("%r1").low[i], expected);
      EXPECT_EQ(all.get("%r1").low[i], equal ? mask : 0);
      EXPECT_EQ(all.get("%p1").low[i], equal);
    }
  }
}

TEST(Match, OfWordsAndDoubleWords) {
  check_match<uint32_t>("b32", "%r");
  check_match<uint64_t>("b64", "%rd");
}

TEST(Redux, OfIntegers) {
  struct Case {
    const char* text;
    uint32_t (*model)(uint32_t, uint32_t);
  };
  const Case cases[] = {
      {"add.s32", [](uint32_t a, uint32_t b) { return a + b; }},
      {"min.u32", [](uint32_t a, uint32_t b) { return std::min(a, b); }},
      {"max.s32",
       [](uint32_t a, uint32_t b) {
         return static_cast<uint32_t>(std::max(static_cast<int>(a), static_cast<int>(b)));
       }},
      {"and.b32", [](uint32_t a, uint32_t b) { return a & b; }},
      {"or.b32", [](uint32_t a, uint32_t b) { return a | b; }},
      {"xor.b32", [](uint32_t a, uint32_t b) { return a ^ b; }},
  };
  std::mt19937_64 random(4);
  for (const Case& test : cases) {
    MemoryRig rig(fmt::format("redux.sync.{} %r1, %r2, -1;", test.text));
    ASSERT_EQ(rig.refusal(), "");
    for (uint32_t mask : kMasks) {
      LaneValues values = random_words(random, uint64_t{1} << 32);
      rig.set("%r2", values);
      rig.set_mask(mask, false);
      rig.set_affine("%r1", 0, 0);
      ASSERT_TRUE(rig.run());
      auto lane = static_cast<size_t>(std::countr_zero(mask));
      auto expected = static_cast<uint32_t>(values.low[lane]);
      for (size_t i = lane + 1; i < kLanes; ++i) {
        if (active(mask, i)) expected = test.model(expected, static_cast<uint32_t>(values.low[i]));
      }
      EXPECT_EQ(rig.get("%r1").low[lane], expected) << test.text;
    }
  }
}

TEST(Exchange, ElectAndActivemask) {
  MemoryRig elect("elect.sync %r1|%p1, 0xf0;");
  elect.set_affine("%r1", 0, 0);
  elect.set("%p1", LaneValues{});
  elect.set_mask(0xf0, false);
  ASSERT_TRUE(elect.run());
  for (size_t i = 4; i < 8; ++i) {
    EXPECT_EQ(elect.get("%r1").low[i], 4u);
    EXPECT_EQ(elect.get("%p1").low[i], i == 4);
  }
  MemoryRig mask("activemask.b32 %r1;");
  mask.set_mask(0x70, true);
  ASSERT_TRUE(mask.run());
  EXPECT_EQ(mask.get("%r1").low[5], 0x70u);
}

TEST(Barrier, NumbersAndCounts) {
  MemoryRig rig("barrier.cta.sync.aligned %r1, %r2;");
  rig.set_affine("%r1", 3, 0);
  rig.set_affine("%r2", 64, 0);
  ASSERT_TRUE(rig.run());
  ASSERT_EQ(rig.barriers.size(), 1u);
  EXPECT_EQ(rig.barriers[0].number, 3u);
  EXPECT_EQ(rig.barriers[0].threads, 64u);
  EXPECT_EQ(rig.barriers[0].kind, BarrierKind::kSync);
  rig.set_affine("%r2", 63, 0);
  EXPECT_FALSE(rig.run());
  EXPECT_EQ(rig.fault->kind, Finding::Kind::kIllegalInstruction);
  rig.set_affine("%r1", 16, 0);
  EXPECT_FALSE(rig.run());
  EXPECT_EQ(rig.fault->kind, Finding::Kind::kIllegalInstruction);
  rig.set_affine("%r1", 1, 1);
  EXPECT_FALSE(rig.run());
  EXPECT_EQ(rig.fault->kind, Finding::Kind::kUnsupported);

  MemoryRig all("bar.sync 0;");
  all.barrier_answer = false;
  EXPECT_FALSE(all.run());
  EXPECT_FALSE(all.fault);
  EXPECT_EQ(all.barriers[0].threads, 0u);

  MemoryRig arrive("bar.arrive 2, 96;");
  ASSERT_TRUE(arrive.run());
  EXPECT_EQ(arrive.barriers[0].kind, BarrierKind::kArrive);
}

TEST(Barrier, ReductionsReadTheResultOfTheirPhase) {
  MemoryRig rig("barrier.cta.red.popc.aligned.u32 %r1, 5, !%p2;");
  ASSERT_EQ(rig.refusal(), "");
  LaneValues votes;
  for (size_t i = 0; i < kLanes; ++i) votes.low[i] = i < 10;
  rig.set("%p2", votes);
  rig.block().barrier_results[5] = {0, kAllLanes, 22};
  ASSERT_TRUE(rig.run());
  EXPECT_EQ(rig.barriers[0].predicate_lanes, ~0x3ffu);
  EXPECT_EQ(rig.get("%r1").low[3], 22u);
  MemoryRig any("bar.red.or.pred %p1, 1, 64, %p2;");
  any.set("%p2", votes);
  any.block().barrier_results[1] = {0, kAllLanes, 22};
  ASSERT_TRUE(any.run());
  EXPECT_EQ(any.get("%p1").low[31], 1u);
  EXPECT_EQ(any.barriers[0].threads, 64u);
}

TEST(Barrier, OfTheWarp) {
  MemoryRig rig("bar.warp.sync %r1;");
  rig.set_affine("%r1", 0xff, 0);
  rig.set_mask(0x0f, false);
  ASSERT_TRUE(rig.run());
  EXPECT_EQ(rig.gathered.back(), 0xffu);
}

TEST(Clocks, AreReadWholeAndInHalves) {
  auto read = [](const std::string& text, const char* reg) {
    MemoryRig rig(text);
    EXPECT_EQ(rig.refusal(), "");
    EXPECT_TRUE(rig.run());
    return rig.get(reg).low[9];
  };
  EXPECT_EQ(read("mov.u64 %rd1, %clock64;", "%rd1"), 0x123456789abcu);
  EXPECT_EQ(read("mov.u32 %r1, %clock;", "%r1"), 0x56789abcu);
  EXPECT_EQ(read("mov.b32 %r1, %clock_hi;", "%r1"), 0x1234u);
  EXPECT_EQ(read("mov.u64 %rd1, %globaltimer;", "%rd1"), 0xfedcba987654u);
  EXPECT_EQ(read("mov.u32 %r1, %globaltimer_lo;", "%r1"), 0xba987654u);
  EXPECT_EQ(read("mov.u32 %r1, %globaltimer_hi;", "%r1"), 0xfedcu);
  MemoryRig rig("mov.u64 %rd1, %clock64;");
  SpinRecorder recorder;
  rig.context().recorder = &recorder;
  ASSERT_TRUE(rig.run());
  EXPECT_TRUE(recorder.uses_clock());
  EXPECT_FALSE(MemoryRig("mov.u32 %r1, %tid.x;").answer());
}

TEST(Clocks, TheLongestSleepCounts) {
  MemoryRig rig("nanosleep.u32 %r1;");
  rig.set_affine("%r1", 100, 10);
  rig.set_mask(0xff, false);
  ASSERT_TRUE(rig.run());
  EXPECT_EQ(rig.slept_ns, 170u);
}

TEST(Fence, Scopes) {
  auto scope = [](const char* text) {
    MemoryRig rig(text);
    EXPECT_TRUE(rig.run()) << text;
    return rig.fences.at(0);
  };
  EXPECT_EQ(scope("membar.cta;"), Scope::kBlock);
  EXPECT_EQ(scope("membar.gl;"), Scope::kDevice);
  EXPECT_EQ(scope("membar.sys;"), Scope::kSystem);
  EXPECT_EQ(scope("fence.acq_rel.gpu;"), Scope::kDevice);
  EXPECT_EQ(scope("fence.sc.sys;"), Scope::kSystem);
  EXPECT_EQ(scope("fence.acquire.cluster;"), Scope::kCluster);
  EXPECT_EQ(scope("fence.proxy.alias;"), Scope::kBlock);
}

TEST(Addresses, WindowsAreAffine) {
  MemoryRig shared("cvta.shared.u64 %rd1, %rd2;");
  shared.set_affine("%rd2", 64, 4);
  ASSERT_TRUE(shared.run());
  EXPECT_EQ(shared.meta("%rd1").is_vector, 0u);
  EXPECT_EQ(shared.get("%rd1").low[5], shared.shared() + 64 + 20);

  MemoryRig local("cvta.local.u64 %rd1, %rd2;");
  local.set_affine("%rd2", 32, 0);
  ASSERT_TRUE(local.run());
  EXPECT_EQ(local.meta("%rd1").is_vector, 0u);
  EXPECT_EQ(local.get("%rd1").low[5], local.local() + 5 * MemoryRig::kLocalLaneBytes + 32);

  MemoryRig back("cvta.to.local.u64 %rd1, %rd2;");
  LaneValues addresses;
  for (uint64_t i = 0; i < kLanes; ++i) {
    addresses.low[i] = back.local() + i * MemoryRig::kLocalLaneBytes + i * i * 4;
  }
  back.set("%rd2", addresses);
  ASSERT_TRUE(back.run());
  for (uint64_t i = 0; i < kLanes; ++i) EXPECT_EQ(back.get("%rd1").low[i], i * i * 4);

  MemoryRig global("cvta.to.global.u64 %rd1, %rd2;");
  global.set_affine("%rd2", 1234, 8);
  ASSERT_TRUE(global.run());
  EXPECT_EQ(global.get("%rd1").low[3], 1234u + 24);
}

TEST(Addresses, SpacesAreTold) {
  for (const char* space : {"global", "shared", "local", "param"}) {
    MemoryRig rig(fmt::format("isspacep.{} %p1, %rd1;", space));
    ASSERT_EQ(rig.refusal(), "");
    LaneValues addresses;
    addresses.low[0] = rig.allocate(0, 64);
    addresses.low[1] = rig.shared() + 100;
    addresses.low[2] = rig.local() + 100;
    addresses.low[3] = rig.params() + 100;
    rig.set("%rd1", addresses);
    rig.set_mask(0xf, false);
    ASSERT_TRUE(rig.run());
    constexpr std::string_view kSpaces[] = {"global", "shared", "local", "param"};
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(rig.get("%p1").low[i], kSpaces[i] == space) << space << i;
    }
  }
}

}  // namespace
}  // namespace cb::sim
