#include "simulator/timing/rate_server.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "base/random.h"

namespace cb::sim {
namespace {

constexpr Time kMicrosecond = 1'000'000;
constexpr Time kWindow = 1 << 16;

TEST(RateServerTest, NothingWaitsWhereNothingElseIs) {
  RateServer server(2.0, 16, 256);  // 500 ps a unit
  EXPECT_EQ(server.pass(1000, 10), 1000u + 5000u);
  EXPECT_EQ(server.pass(100 * kMicrosecond, 1), 100 * kMicrosecond + 500);
  EXPECT_EQ(server.pass(200 * kMicrosecond, 0), 200 * kMicrosecond);
}

TEST(RateServerTest, FractionsOfAPicosecondAddUp) {
  RateServer server(6000.0, 16, 256);  // a sector takes 5.33 ps
  Time last = 0;
  for (int i = 0; i < 100'000; ++i) last = std::max(last, server.pass(0, 32));
  EXPECT_NEAR(static_cast<double>(last), 100'000 * 32 / 6.0, 1000);
}

TEST(RateServerTest, TheRateIsNeverExceeded) {
  // Whatever the order of arrivals, what is done within any interval fits into it.
  RateServer server(1.0, 16, 256);
  CounterRandom random(7);
  std::vector<Time> done_in(400);
  Time now = 0;
  for (uint64_t i = 0; i < 20'000; ++i) {
    now += random.below(3 * i, 1500) * 1000;
    uint64_t units = 1 + random.below(3 * i + 1, 1000);
    Time arrival = now + random.below(3 * i + 2, 4 * kWindow);
    Time end = server.pass(arrival, units);
    EXPECT_GE(end, arrival + units * 1000);
    size_t window = end / (100 * kMicrosecond);
    ASSERT_LT(window, done_in.size());
    done_in[window] += units * 1000;
  }
  for (Time work : done_in) EXPECT_LE(work, 100 * kMicrosecond + 2 * kWindow);
}

TEST(RateServerTest, ALateArrivalFindsTheRoomThatWasLeft) {
  RateServer server(1.0, 16, 256);
  server.pass(5 * kMicrosecond, 1000);
  EXPECT_EQ(server.pass(0, 10), 10'000u);
}

TEST(RateServerTest, ABacklogIsServedInTheOrderOfArrivals) {
  RateServer server(1.0, 16, 8192);
  Time before = 0;
  for (int i = 0; i < 2000; ++i) {
    Time end = server.pass(kMicrosecond, 100);
    EXPECT_GE(end, before);
    before = end;
  }
  EXPECT_NEAR(static_cast<double>(before), 200 * kMicrosecond + kMicrosecond, kWindow);
  EXPECT_LE(server.pass(0, 100), kMicrosecond) << "but what comes before it has room";
}

TEST(RateServerTest, ALateRequestDoesNotWaitForWhatCameLongAfterIt) {
  RateServer server(1.0, 16, 256);
  server.pass(1000 * kMicrosecond, 1);
  EXPECT_EQ(server.pass(0, 1), 1000u);
}

TEST(RateServerTest, RequestsLongerThanTheRingAreServedInTurn) {
  RateServer server(1.0, 16, 256);
  Time first = server.pass(0, 1'000'000'000);
  EXPECT_EQ(first, Time{1'000'000'000'000});
  EXPECT_GE(server.pass(0, 1), first - kWindow);
  EXPECT_EQ(server.pass(2 * first, 5), 2 * first + 5000);
}

TEST(RateServerTest, TerabytesDoNotOverflow) {
  RateServer server(0.5, 16, 256);
  EXPECT_EQ(server.pass(0, uint64_t{1} << 40), Time{2000} << 40);
}

TEST(RateServerTest, ALongBacklogCostsNoMoreThanAShortOne) {
  auto started = std::chrono::steady_clock::now();
  RateServer server(1.0, 16, 8192);
  // Room before the backlog stays free, so that nothing but the way through it is to be found.
  for (int i = 0; i < 500'000; ++i) server.pass(kMicrosecond, 500);
  for (int i = 0; i < 500'000; ++i) server.pass(kMicrosecond + i, 500);
  EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(1));
}

TEST(RateServerTest, EqualRequestsGetEqualAnswers) {
  RateServer a(3.3, 15, 256);
  RateServer b(3.3, 15, 256);
  CounterRandom random(1);
  for (uint64_t i = 0; i < 10'000; ++i) {
    Time t = i * 1000 + random.below(2 * i, 100'000);
    uint64_t units = random.below(2 * i + 1, 20);
    ASSERT_EQ(a.pass(t, units), b.pass(t, units));
  }
}

}  // namespace
}  // namespace cb::sim
