#include "harness/evidence.h"

#include <gtest/gtest.h>

namespace cb::harness {
namespace {

using results::Verdict;

Evidence make(Verdict verdict, uint64_t time_ps, int rank = 0, const std::string& reason = "") {
  Evidence evidence;
  evidence.verdict = verdict;
  evidence.reason = reason;
  evidence.finding.time_ps = time_ps;
  evidence.finding.rank = rank;
  return evidence;
}

Verdict first(const std::vector<Evidence>& all) { return decisive(all)->verdict; }

TEST(EvidenceTest, NoEvidenceDecidesNothing) { EXPECT_EQ(decisive({}), nullptr); }

TEST(EvidenceTest, TheEarliestFailureDecides) {
  EXPECT_EQ(first({make(Verdict::kWrongResult, 5), make(Verdict::kDeadlock, 4)}),
            Verdict::kDeadlock);
}

TEST(EvidenceTest, SomeVerdictsOutrankTheClock) {
  std::vector<Evidence> all = {make(Verdict::kWrongResult, 1), make(Verdict::kCheating, 9)};
  EXPECT_EQ(first(all), Verdict::kCheating);
  all.push_back(make(Verdict::kForbidden, 10));
  EXPECT_EQ(first(all), Verdict::kForbidden);
  all.push_back(make(Verdict::kCompileError, 11));
  EXPECT_EQ(first(all), Verdict::kCompileError);
  all.push_back(make(Verdict::kInfraError, 12));
  EXPECT_EQ(first(all), Verdict::kInfraError);
}

TEST(EvidenceTest, OfOneMomentTheCauseDecides) {
  EXPECT_EQ(first({make(Verdict::kWrongResult, 5, 0), make(Verdict::kMemoryError, 5, 1)}),
            Verdict::kMemoryError);
  EXPECT_EQ(
      first({make(Verdict::kRuntimeError, 5, 0, "cuda_error"), make(Verdict::kMemoryError, 5, 1)}),
      Verdict::kMemoryError);
  EXPECT_EQ(
      first({make(Verdict::kWrongResult, 5, 1), make(Verdict::kRuntimeError, 5, 0, "late_work")}),
      Verdict::kRuntimeError);
}

TEST(EvidenceTest, OfEqualEvidenceTheLowestRankDecides) {
  std::vector<Evidence> all = {make(Verdict::kWrongResult, 5, 3),
                               make(Verdict::kWrongResult, 5, 1)};
  EXPECT_EQ(decisive(all)->finding.rank, 1);
}

}  // namespace
}  // namespace cb::harness
