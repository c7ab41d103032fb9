#include "metrics/paired.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace cb::metrics {
namespace {

/// The noise of launches that the Monte Carlo assumes. A launch's time is the true time, times a
/// log-normal factor (sigma 1.5 %), times 1 + 5..30 % for one launch in ten that something
/// disturbs, times a drift of up to 3 % over the session. A-B-B-A pairs: the mean of two launches
/// of each, so that a linear drift cancels.
class Launches {
 public:
  explicit Launches(uint64_t seed) : generator_(seed) {
    slope_ = std::uniform_real_distribution<double>(-0.03, 0.03)(generator_);
  }

  std::vector<TimePair> pairs(size_t count, double ratio) {
    std::vector<TimePair> made;
    for (size_t i = 0; i < count; ++i) {
      double a = launch(ratio, count);
      double b = launch(1, count) + launch(1, count);
      a += launch(ratio, count);
      made.push_back({a, b});
    }
    return made;
  }

 private:
  double launch(double time, size_t count) {
    double drift =
        1 + slope_ * static_cast<double>(launched_++) / (4.0 * static_cast<double>(count));
    double factor = std::exp(0.015 * normal_(generator_)) * drift;
    if (uniform_(generator_) < 0.1) factor *= 1.05 + 0.25 * uniform_(generator_);
    return time * factor;
  }

  std::mt19937_64 generator_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_;
  double slope_ = 0;
  size_t launched_ = 0;
};

struct Counts {
  int faster = 0, same = 0, slower = 0, unsure = 0;
};
Counts simulate(size_t pairs, double ratio, int trials) {
  Counts counts;
  for (int trial = 0; trial < trials; ++trial) {
    auto made = Launches(static_cast<uint64_t>(trial) + 1).pairs(pairs, ratio);
    switch (compare_paired(made).comparison) {
      case Comparison::kFaster:
        ++counts.faster;
        break;
      case Comparison::kSame:
        ++counts.same;
        break;
      case Comparison::kSlower:
        ++counts.slower;
        break;
      case Comparison::kUnsure:
        ++counts.unsure;
        break;
    }
  }
  return counts;
}

TEST(Paired, RaisesFewFalseAlarmsOnTwoRunsOfTheSame) {
  constexpr int kTrials = 4000;
  for (size_t pairs : {7, 10, 20, 40}) {
    Counts counts = simulate(pairs, 1, kTrials);
    EXPECT_LE(counts.faster + counts.slower, kTrials * 3 / 100) << pairs << " pairs";
  }
}

TEST(Paired, FindsDifferencesThatMatter) {
  EXPECT_GT(simulate(20, 0.93, 500).faster, 450);
  EXPECT_GT(simulate(20, 1 / 0.93, 500).slower, 450);
  EXPECT_EQ(simulate(20, 0.93, 500).slower, 0);
  EXPECT_GT(simulate(40, 1, 500).same, 250);
}

TEST(Paired, IsNeverFasterAndSlowerDependingOnTheOrder) {
  for (uint64_t seed = 1; seed < 200; ++seed) {
    auto pairs = Launches(seed).pairs(12, 0.97);
    std::vector<TimePair> swapped;
    for (const TimePair& pair : pairs) swapped.push_back({pair.b, pair.a});
    PairedResult one = compare_paired(pairs), two = compare_paired(swapped);
    EXPECT_NEAR(one.ratio * two.ratio, 1, 1e-12);
    EXPECT_EQ(one.comparison == Comparison::kFaster, two.comparison == Comparison::kSlower);
    EXPECT_EQ(one.comparison == Comparison::kSame, two.comparison == Comparison::kSame);
  }
}

TEST(Paired, IsMovedLittleByOneLaunch) {
  auto pairs = Launches(5).pairs(15, 1);
  double before = compare_paired(pairs).ratio;
  pairs[3].a *= 50;
  EXPECT_NEAR(compare_paired(pairs).ratio, before, 0.01);
}

TEST(Paired, SaysHowManyPairsAreMissing) {
  PairedResult none = compare_paired({});
  EXPECT_EQ(none.comparison, Comparison::kUnsure);
  EXPECT_EQ(none.pairs_missing, 7u);
  std::vector<TimePair> pairs(6, TimePair{1, 2});
  EXPECT_EQ(compare_paired(pairs).pairs_missing, 1u);
  EXPECT_FALSE(compare_paired(pairs).interval);
  pairs.push_back({1, 2});
  EXPECT_EQ(compare_paired(pairs).comparison, Comparison::kFaster);
  EXPECT_DOUBLE_EQ(compare_paired(pairs).ratio, 0.5);
}

}  // namespace
}  // namespace cb::metrics
