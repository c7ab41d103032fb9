#include "simulator/timing/resources.h"

#include <gtest/gtest.h>

#include <vector>

namespace cb::sim {
namespace {

using Kind = MemoryAccess::Kind;

constexpr Time kMicrosecond = 1'000'000;
constexpr uint64_t kWarpBytes = 512;  ///< 32 lanes of 16 bytes

MemoryAccess accessing(Kind kind, uint16_t holder, uint64_t address, uint32_t bytes = kWarpBytes) {
  return {.kind = kind,
          .device = holder,
          .sectors = (bytes + 31) / 32,
          .bytes = bytes,
          .address = address,
          .end = address + bytes};
}

class ResourcesTest : public ::testing::Test {
 protected:
  const Profile profile = value_or_throw(load_profile("h100x8"));
  Resources resources{profile};

  /// GB/s when `num_sms` multiprocessors of device 0 go through `bytes` of memory.
  double stream(Kind kind, uint16_t holder, uint32_t num_sms, uint64_t bytes,
                uint32_t warp_bytes = kWarpBytes) {
    Time end = 0;
    uint64_t step = 0;
    for (uint64_t at = 0; at < bytes; at += warp_bytes, ++step) {
      auto sm = static_cast<uint32_t>(step % num_sms);
      auto charge = resources.access(0, sm, 0, accessing(kind, holder, at, warp_bytes));
      end = std::max(end, charge.done);
    }
    return static_cast<double>(bytes) * 1000 / static_cast<double>(end);
  }
  /// How long one dependent access takes that is issued at `t`.
  double latency_ns(uint32_t sm, Time t, const MemoryAccess& access) {
    return static_cast<double>(resources.access(0, sm, t, access).done - t) / 1000;
  }
  static void expect_rate(double measured, double expected) {
    EXPECT_NEAR(measured, expected, expected * 0.05);
  }
};

TEST_F(ResourcesTest, OneLoadTakesTheLatencyOfWhatHoldsIt) {
  MemoryAccess word = accessing(Kind::kLoad, 0, 1 << 20, 4);
  EXPECT_NEAR(latency_ns(0, 0, word), profile.hbm_ns, 1);
  EXPECT_NEAR(latency_ns(1, kMicrosecond, word), profile.l2_hit_ns, 1);
  EXPECT_NEAR(latency_ns(1, 2 * kMicrosecond, word), profile.l1_hit_ns, 1);
  resources.invalidate_l1(0, 1);
  EXPECT_NEAR(latency_ns(1, 3 * kMicrosecond, word), profile.l2_hit_ns, 1);
  word.strong = true;
  EXPECT_NEAR(latency_ns(1, 4 * kMicrosecond, word), profile.l2_hit_ns, 1) << "not from L1";
}

TEST_F(ResourcesTest, LatenciesOfOtherPlaces) {
  EXPECT_NEAR(latency_ns(0, 0, accessing(Kind::kLoad, 3, 0, 4)), profile.nvlink_load_ns, 1);
  EXPECT_NEAR(latency_ns(1, 0, accessing(Kind::kStore, 3, 4096, 4)), profile.nvlink_hop_ns, 2);
  EXPECT_NEAR(latency_ns(2, 0, accessing(Kind::kAtomic, 0, 8192, 4)), profile.atomic_ns, 1);
  EXPECT_NEAR(latency_ns(3, 0, accessing(Kind::kAtomic, 3, 8192, 4)), profile.nvlink_load_ns, 2);
  MemoryAccess pinned = accessing(Kind::kLoad, 0, 1 << 20, 4);
  pinned.target = MemoryAccess::Target::kPinned;
  EXPECT_NEAR(latency_ns(4, 0, pinned), profile.pcie_ns, 2);
  MemoryAccess shared = {
      .kind = Kind::kLoad, .target = MemoryAccess::Target::kShared, .conflicts = 1};
  double cycle_ns = 1 / profile.sm_clock_ghz;
  EXPECT_NEAR(latency_ns(5, 0, shared), (profile.shared_cycles + 1) * cycle_ns, 0.1);
  shared.conflicts = 32;
  EXPECT_NEAR(latency_ns(6, 0, shared), (profile.shared_cycles + 32) * cycle_ns, 0.2);
}

TEST_F(ResourcesTest, AStrongAccessTakesEffectHalfWay) {
  MemoryAccess load = accessing(Kind::kLoad, 1, 0, 4);
  load.strong = true;
  auto charge = resources.access(0, 0, 0, load);
  EXPECT_NEAR(static_cast<double>(charge.reached), static_cast<double>(charge.done) / 2, 2000);
  auto store = resources.access(0, 0, 0, accessing(Kind::kStore, 1, 0, 4));
  EXPECT_EQ(store.reached, store.done);
}

TEST_F(ResourcesTest, StreamingReachesTheBandwidthOfMemory) {
  expect_rate(stream(Kind::kLoad, 0, 132, 256 << 20), profile.hbm_gbps);
}

TEST_F(ResourcesTest, NarrowLoadsMoveNoLessData) {
  // Every warp takes half a line; the other half is no hit.
  expect_rate(stream(Kind::kLoad, 0, 132, 64 << 20, 64), profile.hbm_gbps);
}

TEST_F(ResourcesTest, WhatFitsIntoL2IsReadAtItsRate) {
  constexpr uint64_t kBytes = 32 << 20;
  stream(Kind::kLoad, 0, 132, kBytes);
  for (uint32_t sm = 0; sm < 132; ++sm) resources.invalidate_l1(0, sm);
  Time start = 1000 * kMicrosecond;
  Time end = start;
  for (uint64_t at = 0; at < kBytes; at += kWarpBytes) {
    auto sm = static_cast<uint32_t>(at / kWarpBytes % 132);
    end = std::max(end, resources.access(0, sm, start, accessing(Kind::kLoad, 0, at)).done);
  }
  expect_rate(kBytes * 1000 / static_cast<double>(end - start), profile.l2_gbps);
}

TEST_F(ResourcesTest, StoresReachTheBandwidthOfMemory) {
  expect_rate(stream(Kind::kStore, 0, 132, 256 << 20), profile.hbm_gbps);
}

TEST_F(ResourcesTest, OneMultiprocessorHasItsPort) {
  expect_rate(stream(Kind::kLoad, 0, 1, 8 << 20), profile.sm_port_gbps);
}

TEST_F(ResourcesTest, StridesAreChargedBySector) {
  // 32 lanes, 256 bytes apart: a sector of every other line.
  Time end = 0;
  constexpr int kAccesses = 20'000;
  for (int i = 0; i < kAccesses; ++i) {
    MemoryAccess access = accessing(Kind::kLoad, 0, uint64_t{8192} * i, 31 * 256 + 4);
    access.sectors = 32;
    end = std::max(end, resources.access(0, i % 132, 0, access).done);
  }
  expect_rate(kAccesses * 32.0 * 32 * 1000 / static_cast<double>(end), profile.hbm_gbps);
  // The sectors that nobody asked for are still missing.
  MemoryAccess between = accessing(Kind::kLoad, 0, 128, 4);
  EXPECT_NEAR(latency_ns(0, end + 1000 * kMicrosecond, between), profile.hbm_ns, 1);
}

TEST_F(ResourcesTest, PeersAreReadAndWrittenAtTheRateOfTheLink) {
  double expected = profile.nvlink_gbps * profile.nvlink_sm_efficiency;
  expect_rate(stream(Kind::kLoad, 1, 132, 64 << 20), expected);
  EXPECT_EQ(resources.link_bytes(1, 0), uint64_t{64} << 20);
  EXPECT_EQ(resources.link_bytes(0, 1), 0u);
  expect_rate(stream(Kind::kStore, 1, 132, 64 << 20), expected);
  EXPECT_EQ(resources.link_bytes(0, 1), uint64_t{64} << 20);
}

TEST_F(ResourcesTest, TheTwoDirectionsOfALinkAreIndependent) {
  constexpr uint64_t kBytes = 32 << 20;
  Time end = 0;
  for (uint64_t at = 0; at < kBytes; at += kWarpBytes) {
    auto sm = static_cast<uint32_t>(at / kWarpBytes % 132);
    for (uint16_t device : {0, 1}) {
      auto peer = static_cast<uint16_t>(1 - device);
      auto charge = resources.access(device, sm, 0, accessing(Kind::kStore, peer, at));
      end = std::max(end, charge.done);
    }
  }
  expect_rate(kBytes * 1000 / static_cast<double>(end),
              profile.nvlink_gbps * profile.nvlink_sm_efficiency);
}

TEST_F(ResourcesTest, OneMultiprocessorCannotFillTheLinkWithStores) {
  expect_rate(stream(Kind::kStore, 1, 1, 4 << 20), profile.sm_remote_gbps);
  // Nor does it run far ahead of what the link takes.
  auto last = resources.access(0, 0, 0, accessing(Kind::kStore, 1, 0));
  EXPECT_LE(last.done - last.issued, static_cast<Time>(2100 * profile.nvlink_hop_ns));
}

TEST_F(ResourcesTest, AMulticastAllReduceLoadsEachLinkAsTheSwitchDoes) {
  // Every device reduces its eighth and multicasts it: links carry 9/8 of the data each way.
  constexpr uint64_t kBytes = 64 << 20;
  Time end = 0;
  for (uint64_t at = 0; at < kBytes / 8; at += kWarpBytes) {
    auto sm = static_cast<uint32_t>(at / kWarpBytes % 132);
    for (int device = 0; device < 8; ++device) {
      auto load = resources.multicast(device, sm, 0, accessing(Kind::kLoad, 0, at), 8);
      auto store = resources.multicast(device, sm, 0, accessing(Kind::kStore, 0, at), 8);
      end = std::max({end, load.done, store.done});
    }
  }
  double algorithm_gbps = kBytes * 1000 / static_cast<double>(end);
  expect_rate(algorithm_gbps * 9 / 8, profile.nvlink_gbps * profile.nvlink_multimem_efficiency);
}

TEST_F(ResourcesTest, CopyEnginesReachTheirRates) {
  constexpr uint64_t kBytes = 256 << 20;
  auto rate = [](Time took) { return kBytes * 1000 / static_cast<double>(took); };
  Time start = 0;
  auto copy = [&](CopyKind kind, int source, int target) {
    start += 1000'000 * kMicrosecond;
    return rate(resources.copy(kind, source, target, start, kBytes) - start);
  };
  expect_rate(copy(CopyKind::kPeer, 0, 1), profile.nvlink_gbps * profile.nvlink_copy_efficiency);
  expect_rate(copy(CopyKind::kHostToDevice, -1, 0), profile.pcie_gbps);
  expect_rate(copy(CopyKind::kDeviceToHost, 0, -1), profile.pcie_gbps);
  expect_rate(copy(CopyKind::kWithinDevice, 0, 0), profile.hbm_gbps / 2);
  expect_rate(copy(CopyKind::kHostToHost, -1, -1), profile.pcie_gbps);
  start += 1000'000 * kMicrosecond;
  expect_rate(rate(resources.fill(0, start, kBytes) - start), profile.hbm_gbps);
}

TEST_F(ResourcesTest, CopiesBeyondTheEnginesWait) {
  // One to each peer: their ingress is free, the engines are not.
  constexpr uint64_t kBytes = 8 << 20;
  double alone = kBytes * 1000 / (profile.nvlink_gbps * profile.nvlink_copy_efficiency);
  std::vector<double> ends;
  for (int peer = 1; peer <= 4; ++peer) {
    ends.push_back(static_cast<double>(resources.copy(CopyKind::kPeer, 0, peer, 0, kBytes)));
  }
  EXPECT_NEAR(ends[0], alone, alone * 0.01);
  EXPECT_NEAR(ends[2], 3 * alone, alone * 0.05) << "they share the way out";
  EXPECT_NEAR(ends[3], 4 * alone, alone * 0.05) << "waiting is not counted twice";
}

TEST_F(ResourcesTest, APieceOfACopyLeavesRoomBehindIt) {
  Time end = resources.copy(CopyKind::kPeer, 1, 0, 0, Resources::kCopyPieceBytes);
  auto load = resources.access(0, 0, end / 2, accessing(Kind::kLoad, 1, 0, 4));
  EXPECT_LE(load.done, end + static_cast<Time>(profile.nvlink_load_ns * 1000) + 100'000);
}

TEST_F(ResourcesTest, ASchedulerIssuesOneInstructionACycle) {
  double cycle_ps = 1000 / profile.sm_clock_ghz;
  EXPECT_NEAR(static_cast<double>(resources.issue(0, 1, 0, 0, 1)), cycle_ps, 1);
  Time end = 0;
  for (uint32_t warp = 0; warp < 4; ++warp) {
    end = std::max(end, resources.issue(0, 0, 4 * warp, 0, 1000));
  }
  EXPECT_NEAR(static_cast<double>(end), 4000 * cycle_ps, 20'000) << "one scheduler";
  end = 0;
  for (uint32_t warp = 0; warp < 4; ++warp) {
    end = std::max(end, resources.issue(0, 2, warp, 0, 1000));
  }
  EXPECT_NEAR(static_cast<double>(end), 1000 * cycle_ps, 20'000) << "four schedulers";
}

TEST_F(ResourcesTest, EqualHistoriesGiveEqualTimes) {
  Resources again{profile};
  for (uint64_t i = 0; i < 20'000; ++i) {
    MemoryAccess access = accessing(i % 3 == 0 ? Kind::kStore : Kind::kLoad,
                                    static_cast<uint16_t>(i % 8), (i * 7919 % 4096) * 512);
    auto sm = static_cast<uint32_t>(i % 7);
    auto a = resources.access(static_cast<int>(i % 5), sm, i * 300, access);
    auto b = again.access(static_cast<int>(i % 5), sm, i * 300, access);
    ASSERT_EQ(a.done, b.done);
    ASSERT_EQ(a.issued, b.issued);
    ASSERT_LE(a.issued, a.done);
    ASSERT_LE(a.reached, a.done);
  }
}

}  // namespace
}  // namespace cb::sim
