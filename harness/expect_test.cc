#include "harness/expect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace cb::harness {
namespace {

using results::Verdict;
using ::testing::HasSubstr;

results::Record record(Verdict verdict, const std::string& reason = "", int rank = -1,
                       int line = 0) {
  results::Record result;
  result.candidate = "a.cu";
  result.verdict = verdict;
  result.reason = reason;
  result.finding.emplace();
  result.finding->rank = rank;
  result.finding->line = line;
  return result;
}

std::vector<Expectation> load(const std::string& text) {
  TempDir folder("expect");
  write_file(folder.path() + "/e.yaml", text);
  return value_or_throw(load_expectations(folder.path() + "/e.yaml"));
}

TEST(ExpectTest, ThePublishedExpectationsAreUnderstood) {
  auto all = load_expectations(COMMBENCH_SOURCE_DIR "/examples/candidates/expected.yaml");
  ASSERT_TRUE(all) << all.error().message();
  EXPECT_GT(all->size(), 60u);
}

TEST(ExpectTest, VerdictReasonRankAndLineMustFit) {
  Expectation one = load(
      "candidates:\n  - {file: a.cu, about: x, verdict: memory_error, reason: misaligned, "
      "rank: 1, lines: [3, 5]}\n")[0];
  EXPECT_EQ(mismatch(one, record(Verdict::kMemoryError, "misaligned", 1, 5)), "");
  EXPECT_THAT(mismatch(one, record(Verdict::kPass)), HasSubstr("should be memory_error"));
  EXPECT_THAT(mismatch(one, record(Verdict::kMemoryError, "read_only", 1, 5)),
              HasSubstr("is memory_error: read_only"));
  EXPECT_THAT(mismatch(one, record(Verdict::kMemoryError, "misaligned", 0, 5)),
              HasSubstr("rank 0"));
  EXPECT_THAT(mismatch(one, record(Verdict::kMemoryError, "misaligned", 1, 4)),
              HasSubstr("line 4"));
}

TEST(ExpectTest, OtherVerdictsThatAreAsRightPass) {
  Expectation one = load(
      "candidates:\n  - {file: a.cu, about: x, verdict: race, also: wrong_result, rank: 0, "
      "needs: race-detector, without: pass}\n")[0];
  for (Verdict verdict : {Verdict::kPass, Verdict::kWrongResult}) {
    EXPECT_EQ(mismatch(one, record(verdict, "", 1)), "");
  }
  EXPECT_NE(mismatch(one, record(Verdict::kDeadlock)), "");
}

TEST(ExpectTest, MissingAndUnexpectedCandidatesAreMismatches) {
  auto expected = load("candidates:\n  - {file: b.cu, about: x, verdict: pass}\n");
  std::vector<std::string> lines = mismatches(expected, {record(Verdict::kPass)});
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_THAT(lines[0], HasSubstr("b.cu: was not scored"));
  EXPECT_THAT(lines[1], HasSubstr("a.cu: nothing is expected"));
}

TEST(ExpectTest, UnknownKeysAndWordsAreErrors) {
  EXPECT_THROW(load("candidates:\n  - {file: a, about: b, verdict: fine}\n"), Error);
  EXPECT_THROW(load("candidates:\n  - {file: a, about: b, verdict: pass, ranks: 1}\n"), Error);
}

}  // namespace
}  // namespace cb::harness
