#include "harness/cli/render.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace cb::cli {
namespace {

using results::Verdict;
using ::testing::HasSubstr;

results::Record passing() {
  results::Record record;
  record.task = "ar";
  record.candidate = "ar.cu";
  record.verdict = Verdict::kPass;
  results::CaseResult result;
  result.id = "w8";
  result.world_size = 8;
  result.measured = true;
  result.verdict = Verdict::kPass;
  result.bytes = 1'000'000;
  result.type = "bf16";
  result.bus_factor = 1.75;
  result.time_ps = 10'000'000;
  result.reference_ps = 5'000'000;
  record.cases = {result};
  return record;
}

TEST(RenderTest, TablesHaveTheColumnsOfNcclTests) {
  std::string table = score_table({passing()}, false);
  for (const char* title :
       {"size(B)", "count", "type", "redop", "time(us)", "algbw(GB/s)", "busbw(GB/s)", "speedup"}) {
    EXPECT_THAT(table, HasSubstr(title));
  }
  for (const char* cell : {"1000000", "bf16", "10.00", "100.00", "175.00", "5.00", "0.50", "1/1"}) {
    EXPECT_THAT(table, HasSubstr(cell));
  }
}

TEST(RenderTest, AdviceNamesTheVerdictAndItsReason) {
  results::Record record = passing();
  EXPECT_EQ(advice_text(record), "");
  record.verdict = Verdict::kMemoryError;
  record.reason = "out_of_bounds";
  record.finding.emplace();
  EXPECT_THAT(advice_text(record), HasSubstr("explain memory_error out_of_bounds"));
}

TEST(RenderTest, ScoresWithoutMeasurementsHaveDashes) {
  EXPECT_THAT(score_lines({}), HasSubstr("GM-speedup  -"));
}

}  // namespace
}  // namespace cb::cli
