#include "search/llm/mock/script.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace cb::llm {
namespace {

TEST(Script, GivesTheFirstReplyThatFitsAndIsLeft) {
  ScriptPlayer player(
      Script::load_text("replies:\n"
                        "  - {text: special, match: needle, times: 1}\n"
                        "  - {text: twice, times: 2}\n"
                        "  - {text: for needles, match: needle}\n",
                        "s.yaml"));
  EXPECT_EQ(player.next("a needle")->text, "special");
  EXPECT_EQ(player.next("a needle")->text, "twice");
  EXPECT_EQ(player.next("hay")->text, "twice");
  EXPECT_FALSE(player.next("hay").has_value());
  EXPECT_EQ(player.next("a needle")->text, "for needles");
  EXPECT_EQ(player.served(), 4u);
}

TEST(Script, CountsTheCommonStartOfPromptsAsCached) {
  ScriptPlayer player(Script::load_text("replies: []\n", "s.yaml"));
  EXPECT_EQ(player.cached_tokens("12345678abc"), 0u);
  EXPECT_EQ(player.cached_tokens("12345678xyz"), 2u);
}

TEST(Script, SaysWhatIsWrongAndWhere) {
  for (const char* text :
       {"replies:\n  - {fault: explode}\n", "replies:\n  - {times: 0}\n",
        "replies:\n  - {finish: maybe}\n", "replies:\n  - {txt: a}\n",
        "replies:\n  - {text: a, file: b}\n", "replies:\n  - {file: /no/such}\n"}) {
    try {
      Script::load_text(text, "s.yaml");
      ADD_FAILURE() << "accepted " << text;
    } catch (const Error& error) {
      EXPECT_NE(error.message().find("s.yaml:2"), std::string::npos) << error.message();
    }
  }
}

}  // namespace
}  // namespace cb::llm
