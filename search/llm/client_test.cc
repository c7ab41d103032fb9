// The whole client against the mock server, over real sockets.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "search/llm/mock/server.h"
#include "search/llm/provider.h"
#include "search/llm/test_clock.h"

namespace cb::llm {
namespace {

constexpr const char* kKey = "sk-a-secret-key";

struct Wire {
  const char* prefix;
  const char* variable;
  const char* suffix;
};

class ClientTest : public ::testing::TestWithParam<Wire> {
 protected:
  /// A client of a server that plays the script.
  std::shared_ptr<Client> play(const std::string& script, ConnectOptions options = {}) {
    server_ = std::make_unique<MockServer>(
        Script::load_text("key: " + std::string(kKey) + "\nreplies:\n" + script, "script.yaml"), 0);
    std::string variable = GetParam().variable;
    ::setenv((variable + "_BASE_URL").c_str(), (server_->url() + GetParam().suffix).c_str(), 1);
    ::setenv((variable + "_API_KEY").c_str(), kKey, 1);
    return connect(parse_model_name(GetParam().prefix + std::string("/mock")), options, clock_);
  }
  void TearDown() override {
    for (const char* name : {"_BASE_URL", "_API_KEY"}) {
      ::unsetenv((GetParam().variable + std::string(name)).c_str());
    }
  }

  Request question(const std::string& text) {
    Request request;
    request.system = std::string(400, 's');
    request.messages = {{Message::Role::kUser, text}};
    return request;
  }

  std::unique_ptr<MockServer> server_;
  std::shared_ptr<TestClock> clock_ = std::make_shared<TestClock>();
};

TEST_P(ClientTest, ReadsAStreamedAnswer) {
  auto client = play("  - {text: \"héllo wörld, a longer text\", chunk_bytes: 3}\n");
  auto done = client->complete(question("hi"));
  ASSERT_TRUE(done.has_value()) << done.error().message;
  EXPECT_EQ(done->text, "héllo wörld, a longer text");
  EXPECT_EQ(done->finish, Finish::kStop);
  EXPECT_EQ(done->model, "mock");
  EXPECT_EQ(done->request_id, "mock-1");
  EXPECT_GT(*done->usage.input, 100u);
  EXPECT_EQ(*done->usage.cached, 0u);
  auto again = client->complete(question("another"));
  EXPECT_GE(*again->usage.cached, 100u);
}

TEST_P(ClientTest, SeesWhyAnAnswerEnded) {
  auto client = play(
      "  - {text: cut, finish: length, times: 1}\n"
      "  - {text: I cannot, fault: refusal, times: 1}\n");
  EXPECT_EQ(client->complete(question("a"))->finish, Finish::kLength);
  EXPECT_EQ(client->complete(question("a"))->finish, Finish::kRefusal);
}

TEST_P(ClientTest, OutlastsWhatPasses) {
  auto client = play(
      "  - {fault: rate_limit, retry_after_s: 7, times: 1}\n"
      "  - {fault: server_error, times: 1}\n"
      "  - {fault: overloaded, times: 1}\n"
      "  - {text: a long enough text to be cut, fault: truncated, times: 1}\n"
      "  - {text: x, fault: malformed, times: 1}\n"
      "  - {text: x, fault: silent, times: 1}\n"
      "  - {text: at last}\n");
  auto done = client->complete(question("a"));
  ASSERT_TRUE(done.has_value()) << done.error().message;
  EXPECT_EQ(done->text, "at last");
  EXPECT_EQ(clock_->sleeps.size(), 6u);
  EXPECT_EQ(clock_->sleeps.front(), 7);
}

TEST_P(ClientTest, StopsAtOnceWithoutQuota) {
  auto client = play("  - {fault: quota, times: 1}\n  - {text: x}\n");
  auto done = client->complete(question("a"));
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().kind, FailureKind::kQuota);
  EXPECT_EQ(server_->served(), 1u);
}

TEST_P(ClientTest, ReadsNoMoreThanItMay) {
  ConnectOptions options;
  options.limits.max_reply_bytes = 10'000;
  auto client =
      play("  - {text: abcdefgh, fault: huge, chunk_bytes: 8, bytes: 100000000}\n", options);
  auto done = client->complete(question("a"));
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().kind, FailureKind::kTooLarge);
}

TEST_P(ClientTest, StopsReadingWhenItHasEnough) {
  ConnectOptions options;
  options.limits.is_enough = [](const std::string& text) {
    return text.find("END") != std::string::npos;
  };
  auto client =
      play("  - {text: \"code END and a lot of prose after it\", chunk_bytes: 4}\n", options);
  auto done = client->complete(question("a"));
  ASSERT_TRUE(done.has_value());
  EXPECT_EQ(done->finish, Finish::kCutOff);
  EXPECT_LT(done->text.size(), 20u);
}

TEST_P(ClientTest, KeepsTheKeyOutOfEverythingItWrites) {
  TempDir folder("cassette-");
  ConnectOptions options;
  options.record_folder = folder.path() + "/tape";
  auto client = play("  - {text: x, times: 1}\n", options);
  ASSERT_TRUE(client->complete(question("a")).has_value());
  auto refused = client->complete(question("b"));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().message.find(kKey), std::string::npos);
  EXPECT_EQ(read_file(options.record_folder + "/replies.jsonl")->find(kKey), std::string::npos);
  ::setenv((GetParam().variable + std::string("_API_KEY")).c_str(), "sk-wrong", 1);
  auto stranger = connect(parse_model_name(GetParam().prefix + std::string("/mock")), {}, clock_);
  auto unauthorized = stranger->complete(question("a"));
  EXPECT_EQ(unauthorized.error().kind, FailureKind::kAuthentication);
  EXPECT_EQ(unauthorized.error().message.find("sk-wrong"), std::string::npos);
}

TEST_P(ClientTest, SaysWhichHostCannotBeReached) {
  auto client = play("  - {text: x}\n", {.patience = {.max_attempts = 2}});
  std::string url = server_->url();
  server_.reset();
  auto done = client->complete(question("a"));
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().kind, FailureKind::kNetwork);
  EXPECT_NE(done.error().message.find(url), std::string::npos) << done.error().message;
}

INSTANTIATE_TEST_SUITE_P(Wires, ClientTest,
                         ::testing::Values(Wire{"openai", "OPENAI", "/v1"},
                                           Wire{"openai-responses", "OPENAI", "/v1"},
                                           Wire{"local", "LOCAL", "/v1"},
                                           Wire{"anthropic", "ANTHROPIC", ""}));

}  // namespace
}  // namespace cb::llm
