#include "results/record.h"

#include <gtest/gtest.h>

namespace cb::results {
namespace {

Record example() {
  Record record;
  record.task = "ar-oneshot-pull";
  record.task_hash = "aa";
  record.candidate = "ar-oneshot-pull.cu";
  record.verdict = Verdict::kMemoryError;
  record.reason = "out_of_bounds";
  record.finding = Finding{"wrote 4 bytes behind input 1", 3, "tail", 2, 17, "a.cu", 12, {}};
  record.finding->details["kernel"] = "all_reduce";
  CaseResult result;
  result.id = "w8-1m";
  result.world_size = 8;
  result.measured = true;
  result.verdict = Verdict::kPass;
  result.bytes = 1'000'000;
  result.bus_factor = 1.75;
  result.time_ps = 10'000'000;
  result.reference_ps = 5'000'000;
  record.cases = {result};
  record.wall_build_ms = 1.5;
  return record;
}

TEST(RecordTest, SurvivesJson) {
  Json first = to_json(example());
  Result<Record> read = record_from(first);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(dump_json(to_json(*read)), dump_json(first));
  EXPECT_EQ(read->finding->details["kernel"], "all_reduce");
}

TEST(RecordTest, SaysWhereAModelsCandidateCameFrom) {
  Record record = example();
  record.generation = Generation{.model = "openai/m", .sample = 2, .round = 1, .input_tokens = 7};
  Result<Record> read = record_from(to_json(record));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->generation->model, "openai/m");
  EXPECT_EQ(read->generation->input_tokens, 7u);
  EXPECT_EQ(read->generation->output_tokens, std::nullopt);
  EXPECT_EQ(read->generation->cost_usd, std::nullopt);
}

TEST(RecordTest, ReadsTheOlderSchema) {
  Json json = to_json(example());
  json["schema"] = 1;
  json.erase("generation");
  EXPECT_TRUE(record_from(json));
  json["schema"] = 2;
  EXPECT_FALSE(record_from(json));
}

TEST(RecordTest, EveryVerdictHasANameOfItsOwn) {
  EXPECT_EQ(all_verdicts().size(), 13u);
  for (Verdict verdict : all_verdicts()) EXPECT_EQ(verdict_from(to_string(verdict)), verdict);
  EXPECT_FALSE(verdict_from("passed"));
}

TEST(RecordTest, RefusesOtherSchemasAndWords) {
  Json json = to_json(example());
  json["schema"] = 99;
  EXPECT_FALSE(record_from(json));
  json = to_json(example());
  json["verdict"] = "fine";
  EXPECT_FALSE(record_from(json));
  json = to_json(example());
  json.erase("reason");
  EXPECT_FALSE(record_from(json));
}

TEST(RecordTest, SpeedupNeedsAPassAndAllReferences) {
  Record record = example();
  EXPECT_FALSE(record.speedup());
  record.verdict = Verdict::kPass;
  EXPECT_DOUBLE_EQ(*record.speedup(), 0.5);
  record.cases.push_back(record.cases[0]);
  record.cases[1].reference_ps = 0;
  EXPECT_FALSE(record.speedup());
}

TEST(RecordTest, HeadlineIsTheLargestMeasuredCase) {
  Record record = example();
  record.cases.push_back(record.cases[0]);
  record.cases[1].bytes *= 2;
  record.cases[1].measured = false;
  EXPECT_EQ(record.headline(), &record.cases[0]);
  record.cases[1].measured = true;
  EXPECT_EQ(record.headline(), &record.cases[1]);
  EXPECT_DOUBLE_EQ(record.cases[0].busbw_gbps(), 175);
}

}  // namespace
}  // namespace cb::results
