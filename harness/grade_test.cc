#include "harness/grade.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace cb::harness {
namespace {

using results::Verdict;

class GradeTest : public ::testing::Test {
 protected:
  GradeTest()
      : card_(value_or_throw(tasks::load_card(COMMBENCH_SOURCE_DIR "/tasks/ar-oneshot-pull"))),
        key_(RunKey::from_hex(std::string(64, 'a'))) {
    for (int rank = 0; rank < 2; ++rank) {
      RankReport& report = reports_.emplace_back();
      report.rank = rank;
      for (const tasks::Case& test_case : card_.cases) {
        CaseReport& one = report.cases.emplace_back();
        one.id = test_case.id;
        one.complete = true;
        // Rank 1 is the slower one.
        for (uint64_t ps : {900, 100, 300}) {
          one.steps.push_back({1000, 1000 + ps + static_cast<uint64_t>(rank) * 10});
        }
      }
    }
  }

  void accuse(size_t rank, size_t case_index, Verdict verdict) {
    Evidence evidence;
    evidence.verdict = verdict;
    evidence.finding.rank = static_cast<int>(rank);
    reports_[rank].cases[case_index].evidence.push_back(evidence);
  }

  tasks::Card card_;
  RunKey key_;
  Reports reports_;
};

TEST_F(GradeTest, TimesAreMediansOfTheSlowestRank) {
  auto results = grade_cases(card_, key_, reports_);
  ASSERT_EQ(results.size(), card_.cases.size());
  EXPECT_EQ(results[0].verdict, Verdict::kPass);
  EXPECT_EQ(results[0].time_ps, 310u);
  EXPECT_EQ(results[0].cold_ps, 910u);
  EXPECT_EQ(results[0].steps, 3);
  EXPECT_EQ(verdict_of(card_, reports_), nullptr);
}

TEST_F(GradeTest, CasesCarryTheirTraffic) {
  auto results = grade_cases(card_, key_, reports_);
  // The first measured case; its card gives one count and 8 ranks.
  auto measured = std::find_if(card_.cases.begin(), card_.cases.end(),
                               [](const tasks::Case& one) { return one.measured; });
  const auto& first = results[static_cast<size_t>(measured - card_.cases.begin())];
  ASSERT_EQ(measured->world_size, 8);
  EXPECT_EQ(first.count, measured->number("count").max());
  EXPECT_EQ(first.bytes, first.count * 2);
  EXPECT_EQ(first.type, "bf16");
  EXPECT_EQ(first.redop, "sum");
  EXPECT_DOUBLE_EQ(first.bus_factor, 1.75);
}

TEST_F(GradeTest, TheFirstFailingCaseIsTheVerdict) {
  accuse(1, 3, Verdict::kDeadlock);
  accuse(0, 2, Verdict::kWrongResult);
  EXPECT_EQ(verdict_of(card_, reports_)->verdict, Verdict::kWrongResult);
  auto results = grade_cases(card_, key_, reports_);
  EXPECT_EQ(results[2].verdict, Verdict::kWrongResult);
  EXPECT_EQ(results[2].time_ps, 0u);
  EXPECT_EQ(results[1].verdict, Verdict::kPass);
}

TEST_F(GradeTest, CheatingOutranksEarlierCases) {
  accuse(0, 0, Verdict::kWrongResult);
  accuse(0, 4, Verdict::kCheating);
  EXPECT_EQ(verdict_of(card_, reports_)->verdict, Verdict::kCheating);
}

TEST_F(GradeTest, WhatWasNotRunIsSkipped) {
  for (RankReport& report : reports_) report.cases.resize(2);
  reports_[0].cases[1].complete = reports_[1].cases[1].complete = false;
  auto results = grade_cases(card_, key_, reports_);
  EXPECT_EQ(results[0].verdict, Verdict::kPass);
  EXPECT_EQ(results[1].verdict, Verdict::kSkipped);
  EXPECT_EQ(results[2].verdict, Verdict::kSkipped);
}

TEST_F(GradeTest, EvidenceStandsEvenIfOurPartsFailedAfterwards) {
  reports_[0].infra = "the simulator is gone";
  EXPECT_EQ(infra_failure(card_, reports_), "the simulator is gone");
  accuse(1, 0, Verdict::kRuntimeError);
  EXPECT_EQ(infra_failure(card_, reports_), "");
}

}  // namespace
}  // namespace cb::harness
