#include "metrics/speedup.h"

#include <gtest/gtest.h>

namespace cb::metrics {
namespace {

TEST(CaseSpeedup, IsReferenceOverOwn) {
  EXPECT_DOUBLE_EQ(case_speedup({200, 300, {}})->value, 1.5);
  EXPECT_FALSE(case_speedup({0, 300, {}}));
  EXPECT_FALSE(case_speedup({300, 0, {}}));
}

TEST(CaseSpeedup, DoesNotBelieveTimesBelowPhysics) {
  auto speedup = case_speedup({10, 300, 150});
  EXPECT_TRUE(speedup->below_floor);
  EXPECT_DOUBLE_EQ(speedup->value, 2);
  EXPECT_FALSE(case_speedup({150, 300, 150})->below_floor);
}

TEST(AttemptSpeedup, IsNeitherWonNorRuinedByOneCase) {
  std::vector<CaseTime> cases(9, CaseTime{100, 100, {}});
  cases.push_back({1, 1'000'000, {}});
  EXPECT_TRUE(case_speedup(cases.back())->capped);
  EXPECT_NEAR(*attempt_speedup(cases), 1.2589, 1e-3);  // 10^(1/10)
  cases.back() = {1'000'000, 1, {}};
  EXPECT_NEAR(*attempt_speedup(cases), 0.7943, 1e-3);
  EXPECT_FALSE(attempt_speedup({}));
}

}  // namespace
}  // namespace cb::metrics
