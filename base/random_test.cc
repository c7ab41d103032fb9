#include "base/random.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace cb {
namespace {

TEST(CounterRandomTest, DependsOnSeedAndIndexOnly) {
  CounterRandom a(1);
  EXPECT_EQ(a.value(7), CounterRandom(1).value(7));
  EXPECT_NE(a.value(7), a.value(8));
  EXPECT_NE(a.value(7), CounterRandom(2).value(7));
}

TEST(CounterRandomTest, BelowCoversItsRangeAndStaysInIt) {
  CounterRandom random(3);
  int counts[5] = {};
  for (uint64_t i = 0; i < 5000; ++i) {
    uint64_t value = random.below(i, 5);
    ASSERT_LT(value, 5u);
    ++counts[value];
  }
  for (int count : counts) EXPECT_NEAR(count, 1000, 150);
}

TEST(RunKeyTest, HexRoundTripAndSeedsDifferByPurpose) {
  RunKey key = RunKey::random();
  RunKey same = RunKey::from_hex(key.hex());
  EXPECT_EQ(key.seed("a"), same.seed("a"));
  EXPECT_NE(key.seed("a"), key.seed("b"));
  EXPECT_NE(key.hex(), RunKey::random().hex());
}

TEST(RunKeyTest, AWrongKeyIsRefused) {
  EXPECT_THROW(RunKey::from_hex("12"), Error);
  EXPECT_THROW(RunKey::from_hex(std::string(64, 'g')), Error);
}

}  // namespace
}  // namespace cb
