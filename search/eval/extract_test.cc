#include "search/eval/extract.h"

#include <gtest/gtest.h>

#include "search/eval/fence.h"

namespace cb::eval {
namespace {

const std::string kCode = "#include <commbench/task.h>\nextern \"C\" int cb_run() { return 0; }\n";

std::string reason_of(const std::string& reply) {
  auto code = extract_candidate(reply);
  return code ? "code: " + *code : code.error().reason;
}

TEST(Extract, TakesTheLastBlockThatDefinesTheEntryPoint) {
  EXPECT_EQ(*extract_candidate("Sure:\n```cuda\n" + kCode + "```\nDone."), kCode);
  EXPECT_EQ(*extract_candidate("```\nint cb_run_old;\n```\n\n~~~cpp\n" + kCode +
                               "~~~\n```sh\nnvcc x.cu\n```\n"),
            kCode);
}

TEST(Extract, KeepsEveryByteOfTheCode) {
  std::string code = kCode + "// tab\t, umlaut ä, ``` in a comment is not alone on its line\n\n\n";
  EXPECT_EQ(*extract_candidate("```cuda\n" + code + "```"), code);
}

TEST(Extract, UnderstandsLongerFences) {
  std::string code = kCode + "/*\n```\ninner\n```\n*/\n";
  EXPECT_EQ(*extract_candidate("````cuda\n" + code + "````\n"), code);
}

TEST(Extract, LeavesThoughtsOut) {
  EXPECT_EQ(*extract_candidate("<think>```\ncb_run draft\n```</think>\n```\n" + kCode + "```"),
            kCode);
  EXPECT_EQ(reason_of("<think>```\ncb_run draft\n```</think>I give up."), "no_code");
}

TEST(Extract, TakesAnAnswerThatIsAFile) {
  EXPECT_EQ(*extract_candidate("\n" + kCode), kCode);
  EXPECT_EQ(reason_of("Use cb_run like this."), "no_code");
}

TEST(Extract, SaysWhyThereIsNone) {
  EXPECT_EQ(reason_of("  \n"), "empty");
  EXPECT_EQ(reason_of("I cannot help with that."), "no_code");
  EXPECT_EQ(reason_of("```cuda\n__global__ void k() {}\n```"), "no_cb_run");
  EXPECT_EQ(reason_of("```cuda\n" + kCode), "truncated");
  EXPECT_EQ(reason_of("```cuda\n" + kCode + "```\nBetter:\n```cuda\n" + kCode), "truncated");
}

TEST(Fence, CannotBeEndedFromWithin) {
  for (std::string text : {"plain", "```", "a ```` b\n`````\n", "", "\x1b[2J"}) {
    std::string block = fenced(text, "text", 1000);
    size_t fence = block.find("text");
    std::string mark = block.substr(0, fence);
    EXPECT_EQ(block.find(mark, fence), block.size() - mark.size() - 1) << block;
    EXPECT_EQ(block.find('\x1b'), std::string::npos);
  }
}

TEST(Fence, SaysWhatItCut) {
  EXPECT_NE(fenced(std::string(500, 'x'), "", 100).find("400 bytes more"), std::string::npos);
}

}  // namespace
}  // namespace cb::eval
