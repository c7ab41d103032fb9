#include "simulator/timing/resources.h"

#include <gtest/gtest.h>

#include "simulator/timing/rate_server.h"

namespace cb::sim {
namespace {

constexpr Time kMicrosecond = 1'000'000;

TEST(RateServerTest, NothingWaitsWhereNothingElseIs) {
  RateServer server(2.0, 16, 256);  // 500 ps a unit
  EXPECT_EQ(server.pass(1000, 10), 1000u + 5000u);
  EXPECT_EQ(server.pass(100 * kMicrosecond, 1), 100 * kMicrosecond + 500);
}

TEST(RateServerTest, TheRateIsNeverExceeded) {
  RateServer server(1.0, 16, 256);
  Time last = 0;
  for (int i = 0; i < 1000; ++i) last = std::max(last, server.pass(0, 100));
  EXPECT_NEAR(static_cast<double>(last), 100'000 * 1000.0, 70'000);
}

TEST(RateServerTest, ALateArrivalFindsTheRoomThatWasLeft) {
  RateServer server(1.0, 16, 256);
  server.pass(5 * kMicrosecond, 1000);
  EXPECT_EQ(server.pass(0, 10), 10'000u);
}

TEST(RateServerTest, RequestsLongerThanTheRingAreServedInTurn) {
  RateServer server(1.0, 16, 256);
  Time first = server.pass(0, 1'000'000'000);
  EXPECT_EQ(first, Time{1'000'000'000'000});
  EXPECT_GE(server.pass(0, 1), first - (Time{1} << 16));
}

class ResourcesTest : public ::testing::Test {
 protected:
  Profile profile = value_or_throw(load_profile("h100x8"));
  Resources resources{profile};

  static MemoryAccess line(uint64_t address, MemoryAccess::Kind kind, uint16_t device) {
    return {.kind = kind,
            .device = device,
            .sectors = 16,
            .bytes = 512,
            .address = address,
            .end = address + 512};
  }

  /// GB/s when `num_sms` multiprocessors of device 0 stream through `bytes` of memory.
  double stream(MemoryAccess::Kind kind, uint16_t holder, uint32_t num_sms, uint64_t bytes) {
    Time end = 0;
    uint64_t step = 0;
    for (uint64_t at = 0; at < bytes; at += 512, ++step) {
      auto sm = static_cast<uint32_t>(step % num_sms);
      auto charge = resources.access(0, sm, 0, line(at, kind, holder));
      end = std::max(end, charge.done);
    }
    return static_cast<double>(bytes) * 1000 / static_cast<double>(end);
  }
};

TEST_F(ResourcesTest, OneLoadTakesTheLatencyOfMemory) {
  auto charge = resources.access(0, 0, 0, line(0, MemoryAccess::Kind::kLoad, 0));
  EXPECT_NEAR(static_cast<double>(charge.done), profile.hbm_ns * 1000, 5000);
  auto again = resources.access(0, 1, kMicrosecond, line(0, MemoryAccess::Kind::kLoad, 0));
  EXPECT_NEAR(static_cast<double>(again.done - kMicrosecond), profile.l2_hit_ns * 1000, 5000);
  auto own = resources.access(0, 1, 2 * kMicrosecond, line(0, MemoryAccess::Kind::kLoad, 0));
  EXPECT_NEAR(static_cast<double>(own.done - 2 * kMicrosecond), profile.l1_hit_ns * 1000, 5000);
  resources.invalidate_l1(0, 1);
  auto after = resources.access(0, 1, 3 * kMicrosecond, line(0, MemoryAccess::Kind::kLoad, 0));
  EXPECT_NEAR(static_cast<double>(after.done - 3 * kMicrosecond), profile.l2_hit_ns * 1000, 5000);
}

TEST_F(ResourcesTest, StreamingReachesTheBandwidthOfMemory) {
  EXPECT_NEAR(stream(MemoryAccess::Kind::kLoad, 0, 132, 256 << 20), profile.hbm_gbps,
              profile.hbm_gbps * 0.05);
}

TEST_F(ResourcesTest, PeersAreReadAtTheRateOfTheLink) {
  double expected = profile.nvlink_gbps * profile.nvlink_sm_efficiency;
  EXPECT_NEAR(stream(MemoryAccess::Kind::kLoad, 1, 132, 64 << 20), expected, expected * 0.05);
  EXPECT_EQ(resources.link_bytes(1, 0), uint64_t{64} << 20);
}

TEST_F(ResourcesTest, OneMultiprocessorCannotFillTheLinkWithStores) {
  EXPECT_NEAR(stream(MemoryAccess::Kind::kStore, 1, 1, 4 << 20), profile.sm_remote_gbps,
              profile.sm_remote_gbps * 0.05);
}

TEST_F(ResourcesTest, CopyEnginesReachTheirShareOfTheLink) {
  uint64_t bytes = uint64_t{256} << 20;
  Time end = resources.copy(CopyKind::kPeer, 0, 1, 0, bytes);
  double expected = profile.nvlink_gbps * profile.nvlink_copy_efficiency;
  EXPECT_NEAR(static_cast<double>(bytes) * 1000 / static_cast<double>(end), expected,
              expected * 0.05);
}

TEST_F(ResourcesTest, ASchedulerIssuesOneInstructionACycle) {
  Time end = 0;
  for (int warp = 0; warp < 4; ++warp)
    end = std::max(end, resources.issue(0, 0, 4 * warp, 0, 1000));
  EXPECT_NEAR(static_cast<double>(end), 4000 * 1000 / profile.sm_clock_ghz, 70'000);
}

}  // namespace
}  // namespace cb::sim
