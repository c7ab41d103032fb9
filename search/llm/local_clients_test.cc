#include "search/llm/local_clients.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "search/llm/test_clock.h"

namespace cb::llm {
namespace {

Request question(const std::string& text) {
  Request request;
  request.system = "system";
  request.messages = {{Message::Role::kUser, text}};
  return request;
}

TEST(CommandClient, GivesThePromptOnStdinAndReadsStdout) {
  auto client = command_client("cat; echo END", {});
  auto done = client->complete(question("text with 'quotes' and $HOME"));
  ASSERT_TRUE(done.has_value()) << done.error().message;
  EXPECT_EQ(done->text, "system\n\ntext with 'quotes' and $HOME\nEND\n");
  EXPECT_EQ(done->usage.input, std::nullopt);
}

TEST(CommandClient, ReportsAProgramThatFails) {
  auto done = command_client("echo broken >&2; exit 3", {})->complete(question("a"));
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().kind, FailureKind::kCommand);
  EXPECT_NE(done.error().message.find("broken"), std::string::npos);
}

TEST(CommandClient, StopsAtItsLimits) {
  Limits limits;
  limits.max_reply_bytes = 1000;
  auto done = command_client("yes",
                             [&] {
                               limits.total_timeout_s = 0.2;
                               return limits;
                             }())
                  ->complete(question("a"));
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().kind, FailureKind::kTimeout);
  auto large = command_client("head -c 5000 /dev/zero", limits)->complete(question("a"));
  ASSERT_FALSE(large.has_value());
  EXPECT_EQ(large.error().kind, FailureKind::kTooLarge);
}

TEST(FileClient, WaitsForAnAnswerInTheFolder) {
  TempDir folder("answers-");
  /// Writes the answer when the client sleeps for the first time.
  class Person : public TestClock {
   public:
    explicit Person(std::string path) : path_(std::move(path)) {}
    void sleep(double seconds) override {
      TestClock::sleep(seconds);
      for (const auto& entry : std::filesystem::directory_iterator(path_)) {
        std::string name = entry.path().string();
        prompt = *read_file(name);
        write_file(name.substr(0, name.find(".prompt.md")) + ".reply.md", "by hand");
        return;
      }
    }
    std::string prompt;

   private:
    std::string path_;
  };
  auto person = std::make_shared<Person>(folder.path());
  auto client = file_client(folder.path(), {}, person);
  EXPECT_EQ(client->complete(question("do it"))->text, "by hand");
  EXPECT_EQ(person->prompt, "system\n\ndo it\n");
  size_t sleeps = person->sleeps.size();
  EXPECT_EQ(client->complete(question("do it"))->text, "by hand");
  EXPECT_EQ(person->sleeps.size(), sleeps);
}

TEST(FileClient, GivesUpAfterAWhile) {
  TempDir folder("answers-");
  Limits limits;
  limits.total_timeout_s = 10;
  auto done =
      file_client(folder.path(), limits, std::make_shared<TestClock>())->complete(question("a"));
  EXPECT_EQ(done.error().kind, FailureKind::kTimeout);
}

TEST(PromptText, NamesTheSpeakersOfAConversation) {
  Request request = question("a");
  request.messages.push_back({Message::Role::kAssistant, "b"});
  request.messages.push_back({Message::Role::kUser, "c\n"});
  EXPECT_EQ(prompt_text(request), "system\n\n## user\n\na\n\n## assistant\n\nb\n\n## user\n\nc\n");
}

}  // namespace
}  // namespace cb::llm
