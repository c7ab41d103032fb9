#include <gmock/gmock.h>

#include "simulator/decode/coverage/table.h"

namespace cb::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(PtxForms, ExpandsEachChoiceOfAlternatives) {
  EXPECT_THAT(expand_alternatives("ret;"), ElementsAre("ret;"));
  EXPECT_THAT(expand_alternatives("a<|.x>.<y|z> b|c;"),
              ElementsAre("a.y b|c;", "a.z b|c;", "a.x.y b|c;", "a.x.z b|c;"));
}

TEST(PtxForms, ReadsFamiliesInstructionsAndTargets) {
  auto read = parse_forms("# comment\n## Family\n= one\none <%r1|2>;\n[sm_100a] one.b2 %r1;\n");
  ASSERT_TRUE(read.has_value());
  ASSERT_EQ(read->size(), 1u);
  const PtxInstruction& one = read->front();
  EXPECT_EQ(one.family, "Family");
  EXPECT_EQ(one.name, "one");
  ASSERT_EQ(one.forms.size(), 3u);
  EXPECT_EQ(one.forms[1].text, "one 2;");
  EXPECT_TRUE(one.forms[1].is_legal());
  EXPECT_EQ(one.forms[2].target, "sm_100a");
}

TEST(PtxForms, AFormBeforeAnyInstructionIsAnErrorWithItsLine) {
  auto read = parse_forms("## Family\nret;\n");
  ASSERT_FALSE(read.has_value());
  EXPECT_THAT(read.error().message(), HasSubstr("line 2"));
}

FormState state_of(const std::string& text, const std::string& target = "sm_90a") {
  return ask_decoder({.text = text, .pattern = text, .target = target}).state;
}

TEST(PtxCoverage, TheDecoderAnswers) {
  EXPECT_EQ(state_of("add.u32 %r0, %r1, %r2;"), FormState::kDone);
  EXPECT_EQ(state_of("add.u32.wrong %r0, %r1, %r2;"), FormState::kNotYet);
  EXPECT_EQ(state_of("add.u32.wrong %r0, %r1, %r2;", "sm_100"), FormState::kRefused);
  EXPECT_EQ(state_of("add.u32 %r0, %r1, %r2;", "sm_100"), FormState::kWrong);
  EXPECT_EQ(state_of("suq.width.b32 %r0, [%rd1];"), FormState::kRefused);
}

TEST(PtxCoverage, ReasonsStandWithoutTheirPlace) {
  PtxForm form{.text = "tcgen05.wait::ld.sync.aligned;", .pattern = "", .target = "sm_100a"};
  EXPECT_EQ(ask_decoder(form).why, "needs sm_100a");
}

TEST(PtxCoverage, WhatTheDecoderShouldNotTakeIsNamed) {
  PtxForm form{.text = "ret;", .pattern = "ret;", .target = "sm_100"};
  CoverageTable table = coverage_table({{.family = "F", .name = "ret", .forms = {form}}}, {});
  EXPECT_THAT(table.wrong, ElementsAre("ret;"));
}

}  // namespace
}  // namespace cb::sim
