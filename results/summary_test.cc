#include "results/summary.h"

#include <gtest/gtest.h>

namespace cb::results {
namespace {

Record with(Verdict verdict) {
  Record record;
  record.verdict = verdict;
  return record;
}

TEST(SummaryTest, InfraErrorsNeverCountAgainstACandidate) {
  std::vector<Record> records = {with(Verdict::kPass), with(Verdict::kInfraError),
                                 with(Verdict::kSkipped), with(Verdict::kDeadlock)};
  metrics::Scores scores = summarize(records);
  EXPECT_EQ(scores.attempts, 2u);
  EXPECT_DOUBLE_EQ(scores.pass_rate, 0.5);
}

TEST(SummaryTest, WhatWasNotMeasuredIsNull) {
  Json json = to_json(summarize(std::vector<Record>{with(Verdict::kPass)}));
  EXPECT_TRUE(json["gm_speedup"].is_null());
  EXPECT_EQ(json["passed"], 1);
}

}  // namespace
}  // namespace cb::results
