#include "search/eval/scores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace cb::eval {
namespace {

using results::Record;
using results::Verdict;
using ::testing::HasSubstr;

Record made(const std::string& task, int sample, int round, Verdict verdict,
            std::optional<double> speedup = std::nullopt) {
  Record record;
  record.task = task;
  record.attempt = sample * 10 + round + 1;
  record.verdict = verdict;
  record.generation = results::Generation{.model = "m",
                                          .sample = sample,
                                          .round = round,
                                          .input_tokens = 100,
                                          .cached_tokens = 50,
                                          .output_tokens = 10,
                                          .cost_usd = 0.5};
  if (speedup) {
    results::CaseResult result;
    result.measured = true;
    result.verdict = Verdict::kPass;
    result.time_ps = 1000;
    result.reference_ps = static_cast<uint64_t>(1000 * *speedup);
    record.cases = {result};
  }
  return record;
}

TEST(EvalScores, ASampleIsWhatItsBestRoundIs) {
  std::vector<Record> records = {
      made("a", 0, 0, Verdict::kDeadlock), made("a", 0, 1, Verdict::kPass, 0.5),
      made("a", 0, 2, Verdict::kPass, 2.0), made("a", 0, 3, Verdict::kWrongResult)};
  EvalScores scores = eval_scores(records, 1);
  EXPECT_EQ(scores.samples, 1u);
  EXPECT_EQ(scores.passed, 1u);
  EXPECT_DOUBLE_EQ(*scores.geomean_speedup, 2);
  EXPECT_DOUBLE_EQ(scores.good_rate, 1);
  EXPECT_DOUBLE_EQ(*scores.spending.cost_usd, 2);
  EXPECT_DOUBLE_EQ(*scores.cost_per_solved_usd, 2);
  EXPECT_DOUBLE_EQ(*scores.spending.cached_ratio(), 0.5);
}

TEST(EvalScores, EveryTaskCountsTheSame) {
  std::vector<Record> records = {made("a", 0, 0, Verdict::kPass, 1.0)};
  for (int sample = 0; sample < 9; ++sample) {
    records.push_back(made("b", sample, 0, Verdict::kNoAnswer));
  }
  EvalScores scores = eval_scores(records, 2);
  EXPECT_DOUBLE_EQ(scores.pass_rate, 0.5);
  EXPECT_EQ(scores.no_answers, 9u);
  EXPECT_LE(scores.interval->low, 0.5);
  EXPECT_GE(scores.interval->high, 0.5);
  ASSERT_EQ(scores.pass_at_k.size(), 2u);
  EXPECT_DOUBLE_EQ(scores.pass_at_k[0].second, 0.5);
  EXPECT_DOUBLE_EQ(scores.pass_at_k[1].second, 0);
}

TEST(EvalScores, InfrastructureFailuresSayNothingAboutAModel) {
  std::vector<Record> records = {made("a", 0, 0, Verdict::kPass, 1.0),
                                 made("a", 1, 0, Verdict::kInfraError)};
  EvalScores scores = eval_scores(records, 2);
  EXPECT_EQ(scores.samples, 1u);
  EXPECT_DOUBLE_EQ(scores.pass_rate, 1);
}

TEST(EvalScores, AnUnknownCostStaysUnknown) {
  std::vector<Record> records = {made("a", 0, 0, Verdict::kPass, 1.0),
                                 made("a", 1, 0, Verdict::kPass, 1.0)};
  records[1].generation->cost_usd = std::nullopt;
  EvalScores scores = eval_scores(records, 2);
  EXPECT_EQ(scores.spending.cost_usd, std::nullopt);
  EXPECT_EQ(scores.cost_per_solved_usd, std::nullopt);
  EXPECT_THAT(score_text(scores), HasSubstr("Cost        unknown"));
  EXPECT_TRUE(to_json(scores)["cost_usd"].is_null());
}

TEST(LastOfEach, KeepsTheLaterRecordOfAnAttempt) {
  auto kept = last_of_each({made("b", 0, 0, Verdict::kInfraError), made("a", 0, 0, Verdict::kPass),
                            made("b", 0, 0, Verdict::kRace)});
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[0].task, "a");
  EXPECT_EQ(kept[1].verdict, Verdict::kRace);
}

}  // namespace
}  // namespace cb::eval
