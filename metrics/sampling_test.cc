#include "metrics/sampling.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace cb::metrics {
namespace {

/// By drawing all subsets of size k.
double pass_at_k_by_counting(unsigned samples, unsigned passed, unsigned k) {
  unsigned subsets = 0, with_pass = 0;
  for (unsigned set = 0; set < 1u << samples; ++set) {
    if (static_cast<unsigned>(__builtin_popcount(set)) != k) continue;
    ++subsets;
    with_pass += (set & ((1u << passed) - 1)) != 0;
  }
  return static_cast<double>(with_pass) / subsets;
}

TEST(PassAtK, IsTheShareOfSubsetsWithAPass) {
  for (unsigned n = 1; n <= 9; ++n) {
    for (unsigned c = 0; c <= n; ++c) {
      for (unsigned k = 1; k <= n; ++k) {
        EXPECT_NEAR(*pass_at_k(n, c, k), pass_at_k_by_counting(n, c, k), 1e-12)
            << n << " " << c << " " << k;
      }
    }
  }
}

TEST(PassAtK, GrowsWithPassesAndWithSamplesDrawn) {
  for (uint64_t c = 1; c <= 200; ++c) {
    EXPECT_GE(*pass_at_k(200, c, 10), *pass_at_k(200, c - 1, 10));
  }
  for (uint64_t k = 2; k <= 200; ++k) {
    EXPECT_GE(*pass_at_k(200, 7, k), *pass_at_k(200, 7, k - 1));
  }
  EXPECT_EQ(pass_at_k(10, 3, 11), std::nullopt);
  EXPECT_EQ(pass_at_k(10, 3, 0), std::nullopt);
}

TEST(FastP, CountsFailuresAndFallsWithTheThreshold) {
  CounterRandom random(7);
  std::vector<TimedAttempt> attempts;
  for (uint64_t i = 0; i < 60; ++i) {
    TimedAttempt attempt{random.below(3 * i, 3) != 0, std::nullopt};
    if (random.below(3 * i + 1, 4) != 0) {
      attempt.speedup = static_cast<double>(random.below(3 * i + 2, 40)) / 10;
    }
    attempts.push_back(attempt);
  }
  auto curve = fast_p_curve(attempts);
  ASSERT_GT(curve.size(), 5u);
  EXPECT_EQ(curve.front().threshold, 0);
  for (size_t i = 0; i < curve.size(); ++i) {
    EXPECT_EQ(curve[i].fraction, fast_p(attempts, curve[i].threshold));
    if (i > 0) {
      EXPECT_LT(curve[i].fraction, curve[i - 1].fraction + 1e-12);
    }
  }
  EXPECT_EQ(fast_p({}, 1), 0);
  EXPECT_DOUBLE_EQ(fast_p(std::vector<TimedAttempt>{{true, 2.0}, {false, 9.0}, {true, {}}}, 1),
                   1.0 / 3);
}

}  // namespace
}  // namespace cb::metrics
