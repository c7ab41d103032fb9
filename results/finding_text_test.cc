#include "results/finding_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace cb::results {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(FindingTextTest, FindingsAreShownAndMadeHarmless) {
  Record record;
  record.verdict = Verdict::kMemoryError;
  record.reason = "out_of_bounds";
  record.finding.emplace();
  record.finding->message = "wrote \x1b[31m outside";
  record.finding->file = "ar.cu";
  record.finding->line = 12;
  record.finding->rank = 3;
  record.finding->details["buffer"] = "input 1";
  std::string text = finding_text(record);
  EXPECT_THAT(text, HasSubstr("ar.cu:12"));
  EXPECT_THAT(text, HasSubstr("rank 3"));
  EXPECT_THAT(text, HasSubstr("buffer: input 1"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(FindingTextTest, WrongElementsAreListed) {
  Record record;
  record.verdict = Verdict::kWrongResult;
  record.finding.emplace();
  record.finding->details["first"].push_back(
      {{"element", 7}, {"expected", "1.5"}, {"actual", "0"}, {"note", "poison"}});
  EXPECT_THAT(finding_text(record), HasSubstr("element 7: expected 1.5, actual 0 (poison)"));
}

TEST(FindingTextTest, APassHasNone) {
  Record record;
  record.verdict = Verdict::kPass;
  record.finding.emplace();
  EXPECT_EQ(finding_text(record), "");
}

}  // namespace
}  // namespace cb::results
