#include "metrics/interval.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"

namespace cb::metrics {
namespace {

TEST(NormalQuantile, InvertsTheDistribution) {
  for (double p : {1e-9, 1e-4, 0.01, 0.024, 0.025, 0.3, 0.5, 0.8, 0.975, 0.9999}) {
    EXPECT_NEAR(std::erfc(-normal_quantile(p) / std::sqrt(2)) / 2, p, 1e-8 * p + 1e-12);
  }
}

TEST(Wilson, StaysWithinBoundsAndHoldsTheRate) {
  Interval none = wilson(0, 10);
  EXPECT_EQ(none.low, 0);
  EXPECT_NEAR(none.high, 0.2775, 1e-4);  // z^2 / (n + z^2)
  Interval half = wilson(50, 100);
  EXPECT_NEAR(half.low, 0.4038, 1e-4);
  EXPECT_NEAR(half.high, 0.5962, 1e-4);
  EXPECT_EQ(wilson(0, 0).high, 1);
}

Statistic mean_of(const std::vector<double>& values) {
  return [&values](std::span<const size_t> tasks) -> std::optional<double> {
    double sum = 0;
    for (size_t task : tasks) sum += values[task];
    return sum / static_cast<double>(tasks.size());
  };
}

TEST(Bootstrap, CoversTheTrueMeanAboutAsOftenAsItSays) {
  constexpr int kTrials = 400;
  int covered = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    CounterRandom random(static_cast<uint64_t>(trial) + 100);
    std::vector<double> values;
    for (uint64_t i = 0; i < 40; ++i) values.push_back(static_cast<double>(random.below(i, 1000)));
    auto interval = bootstrap(values.size(), mean_of(values),
                              {.resamples = 300, .seed = static_cast<uint64_t>(trial)});
    covered += interval->low <= 499.5 && 499.5 <= interval->high;
  }
  // The percentile bootstrap of 40 values covers a little less than it says.
  EXPECT_GT(covered, kTrials * 90 / 100);
  EXPECT_LT(covered, kTrials * 985 / 1000);
}

TEST(Bootstrap, GivesTheSameForTheSameSeed) {
  std::vector<double> values = {1, 5, 2, 8, 9, 3};
  auto one = bootstrap(values.size(), mean_of(values), {.seed = 3});
  auto two = bootstrap(values.size(), mean_of(values), {.seed = 3});
  EXPECT_EQ(one->low, two->low);
  EXPECT_EQ(one->high, two->high);
}

TEST(Bootstrap, SaysNothingWithoutData) {
  std::vector<double> values;
  EXPECT_FALSE(bootstrap(0, mean_of(values)));
  EXPECT_FALSE(bootstrap(3, [](std::span<const size_t>) { return std::optional<double>(); }));
}

}  // namespace
}  // namespace cb::metrics
