#include "metrics/metrics.h"

#include <gtest/gtest.h>

namespace cb::metrics {
namespace {

TEST(MetricsTest, MedianIsTheMiddleOrTheMeanOfTheMiddleTwo) {
  EXPECT_FALSE(median({}));
  EXPECT_EQ(*median({7}), 7);
  EXPECT_EQ(*median({9, 1, 5}), 5);
  EXPECT_EQ(*median({9, 1, 5, 2}), 3.5);
}

TEST(MetricsTest, GeometricMeanOfReciprocalsIsOne) {
  EXPECT_FALSE(geometric_mean({}));
  EXPECT_FALSE(geometric_mean(std::vector<double>{2, 0}));
  EXPECT_FALSE(geometric_mean(std::vector<double>{2, -1}));
  EXPECT_DOUBLE_EQ(*geometric_mean(std::vector<double>{4, 0.25}), 1);
  EXPECT_DOUBLE_EQ(*geometric_mean(std::vector<double>{2, 8}), 4);
}

TEST(MetricsTest, BandwidthsFollowNcclTests) {
  // 1 MB in 10 us is 100 GB/s; an all-reduce of 8 ranks moves 2 * 7 / 8 of it over each link.
  EXPECT_DOUBLE_EQ(algbw_gbps(1'000'000, 10'000'000), 100);
  EXPECT_DOUBLE_EQ(busbw_gbps(1'000'000, 1.75, 10'000'000), 175);
  EXPECT_EQ(algbw_gbps(1'000'000, 0), 0);
}

TEST(MetricsTest, FailedAttemptsLowerTheRatesAndNotTheSpeedups) {
  std::vector<Attempt> attempts = {{true, 2.0}, {true, 0.5}, {false, 9.0}, {true, std::nullopt}};
  Scores result = scores(attempts);
  EXPECT_EQ(result.passed, 3u);
  EXPECT_EQ(result.measured, 2u);
  EXPECT_EQ(result.good, 1u);
  EXPECT_DOUBLE_EQ(result.pass_rate, 0.75);
  EXPECT_DOUBLE_EQ(result.good_rate, 0.25);
  EXPECT_DOUBLE_EQ(*result.geomean_speedup, 1);
  EXPECT_DOUBLE_EQ(*result.pass_times_geomean, 0.75);
}

TEST(MetricsTest, GoodMeansAtMostFivePercentSlower) {
  EXPECT_EQ(scores(std::vector<Attempt>{{true, 1 / 1.05}}).good, 1u);
  EXPECT_EQ(scores(std::vector<Attempt>{{true, 1 / 1.06}}).good, 0u);
}

TEST(MetricsTest, NoAttemptsHaveNoScore) {
  Scores result = scores({});
  EXPECT_EQ(result.pass_rate, 0);
  EXPECT_FALSE(result.geomean_speedup);
  EXPECT_FALSE(result.pass_times_geomean);
}

}  // namespace
}  // namespace cb::metrics
