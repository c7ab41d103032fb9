#include "harness/cli/explain.h"

#include <gtest/gtest.h>

#include <set>

#include "results/record.h"

namespace cb::cli {
namespace {

TEST(ExplainTest, EveryVerdictIsExplained) {
  for (results::Verdict verdict : results::all_verdicts()) {
    const Explanation* found = find_explanation(to_string(verdict));
    ASSERT_NE(found, nullptr) << to_string(verdict);
    EXPECT_TRUE(found->of.empty());
  }
}

TEST(ExplainTest, EveryReasonBelongsToAVerdictAndSaysWhatToDo) {
  std::set<std::string_view> words;
  for (const Explanation& one : explanations()) {
    EXPECT_TRUE(words.insert(one.word).second) << one.word;
    EXPECT_FALSE(one.meaning.empty()) << one.word;
    EXPECT_FALSE(one.advice.empty()) << one.word;
    EXPECT_TRUE(one.of.empty() || results::verdict_from(one.of)) << one.word;
  }
}

TEST(ExplainTest, UnknownWordsAreNotFound) { EXPECT_EQ(find_explanation("fine"), nullptr); }

}  // namespace
}  // namespace cb::cli
