#include "simulator/exec/mbarrier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace cb::sim {
namespace {

using ::testing::HasSubstr;

TEST(Mbarrier, ZerosAndUndefinedMemoryAreNotOne) {
  EXPECT_FALSE(BarrierState(0).is_valid());
  EXPECT_FALSE(BarrierState(0xd5d5d5d5d5d5d5d5).is_valid());
  EXPECT_FALSE(BarrierState(~uint64_t{0}).is_valid());
  EXPECT_FALSE(BarrierState::invalidated().is_valid());
  EXPECT_TRUE(BarrierState::initial(1).is_valid());
}

/// What PTX says, in numbers of its own.
struct Model {
  int64_t phase = 0, pending = 0, expected = 0, bytes = 0;

  bool apply(const BarrierUpdate& update) {
    Model next = *this;
    int64_t arrivals = int64_t{update.arrivals} + update.drops;
    next.pending += update.added;
    next.bytes += update.expect_bytes;
    if (next.pending > 1048575 || next.bytes > 1048575) return false;
    next.pending -= arrivals;
    next.expected -= update.drops;
    next.bytes -= update.complete_bytes;
    if (next.pending < 0 || next.expected < 0 || next.bytes < -1048575) return false;
    if (next.pending == 0 && next.bytes == 0) {
      if (!update.may_complete) return false;
      ++next.phase;
      next.pending = next.expected;
    }
    *this = next;
    return true;
  }
};

TEST(Mbarrier, CountsAsTheModel) {
  std::mt19937 random(3);
  auto below = [&](uint32_t bound) { return static_cast<uint32_t>(random() % bound); };
  for (int run = 0; run < 200; ++run) {
    uint32_t count = run % 3 == 0 ? BarrierState::kMaxCount - below(4) : 1 + below(6);
    BarrierState state = BarrierState::initial(count);
    Model model{.pending = count, .expected = count};
    for (int step = 0; step < 60; ++step) {
      BarrierUpdate update;
      switch (below(6)) {
        case 0:
          update.arrivals = 1 + below(run % 3 == 0 ? BarrierState::kMaxCount : 3);
          break;
        case 1:
          update.drops = 1;
          break;
        case 2:
          update.expect_bytes = below(2) ? BarrierState::kMaxCount : 16 * below(4);
          update.arrivals = below(2);
          break;
        case 3:
          update.complete_bytes = below(2) ? BarrierState::kMaxCount : 16 * below(4);
          break;
        case 4:
          update.added = 1;
          break;
        default:
          update.arrivals = 1;
          update.may_complete = false;
      }
      uint64_t before = state.bits();
      bool taken = !state.apply(update).has_value();
      ASSERT_EQ(taken, model.apply(update)) << state.describe();
      if (!taken) ASSERT_EQ(state.bits(), before);
      ASSERT_EQ(state.pending(), model.pending);
      ASSERT_EQ(state.expected(), model.expected);
      ASSERT_EQ(state.outstanding_bytes(), model.bytes);
      ASSERT_EQ(state.parity(), model.phase % 2);
    }
  }
}

TEST(Mbarrier, SaysWhatItWaitsFor) {
  BarrierState state = BarrierState::initial(4);
  ASSERT_FALSE(state.apply({.arrivals = 3, .expect_bytes = 1024}));
  EXPECT_EQ(state.describe(), "phase 0, 3 of 4 arrived, 1024 bytes outstanding");
  ASSERT_FALSE(state.apply({.complete_bytes = 1040}));
  EXPECT_EQ(state.describe(), "phase 0, 3 of 4 arrived, 16 bytes not announced");
  EXPECT_THAT(*state.apply({.arrivals = 2}), HasSubstr("2 arrivals where the phase waits for 1"));
  BarrierState gone = BarrierState::invalidated();
  EXPECT_THAT(*gone.apply({.arrivals = 1}), HasSubstr("was invalidated"));
}

}  // namespace
}  // namespace cb::sim
