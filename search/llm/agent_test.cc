#include "search/llm/agent.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstdlib>
#include <thread>

#include "search/llm/test_clock.h"

namespace cb::llm {
namespace {

class EchoClient : public Client {
 public:
  Completion complete(const Request& request) override {
    if (request.system == "fail") {
      return tl::unexpected(Failure{FailureKind::kQuota, "none left", 429});
    }
    Reply reply;
    reply.text = request.messages.at(0).text + std::to_string(request.sample);
    reply.usage.cached = 3;
    return reply;
  }
};

TEST(Agent, CarriesRepliesAndFailuresForSeveralAtATime) {
  auto [agent, client_ends] = agent_connections(3);
  EchoClient echo;
  std::thread server([&echo, agent = std::move(agent)] {
    std::vector<int> fds;
    for (const UniqueFd& fd : agent) fds.push_back(fd.get());
    serve_requests(fds, echo);
  });
  {
    std::unique_ptr<Client> client = agent_client(std::move(client_ends));
    std::vector<std::thread> askers;
    for (uint32_t i = 0; i < 12; ++i) {
      askers.emplace_back([&client, i] {
        Request request;
        request.messages = {{Message::Role::kUser, std::string(100'000, 'x')}};
        request.sample = i;
        request.temperature = 0.5;
        auto done = client->complete(request);
        ASSERT_TRUE(done.has_value());
        EXPECT_EQ(done->text, std::string(100'000, 'x') + std::to_string(i));
        EXPECT_EQ(done->usage.cached, 3u);
      });
    }
    for (std::thread& asker : askers) asker.join();
    Request request;
    request.system = "fail";
    auto failed = client->complete(request);
    ASSERT_FALSE(failed.has_value());
    EXPECT_EQ(failed.error().kind, FailureKind::kQuota);
    EXPECT_EQ(failed.error().message, "none left");
    EXPECT_EQ(failed.error().http_status, 429);
  }
  server.join();
}

TEST(Agent, ThatEndedMakesEveryRequestFail) {
  auto [agent, client_ends] = agent_connections(2);
  agent.clear();
  std::unique_ptr<Client> client = agent_client(std::move(client_ends));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(client->complete({}).error().kind, FailureKind::kCommand);
}

TEST(KeyVariables, AreThoseThatHoldSecrets) {
  ::setenv("SOME_API_KEY", "x", 1);
  ::setenv("HF_TOKEN", "x", 1);
  auto names = key_variables();
  auto has = [&](const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  EXPECT_TRUE(has("SOME_API_KEY"));
  EXPECT_TRUE(has("HF_TOKEN"));
  EXPECT_FALSE(has("PATH"));
  ::unsetenv("SOME_API_KEY");
  ::unsetenv("HF_TOKEN");
}

}  // namespace
}  // namespace cb::llm
