#include "search/llm/cassette.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "search/llm/test_clock.h"

namespace cb::llm {
namespace {

Request question(const std::string& text, uint32_t sample = 0) {
  Request request;
  request.system = "system\ntext";
  request.messages = {{Message::Role::kUser, text}};
  request.sample = sample;
  return request;
}

TEST(CassetteClient, AnswersRecordedRequestsInAnyOrderWithoutAsking) {
  TempDir folder("cassette-");
  auto inner = std::make_shared<ListClient>(
      std::vector{answered("first", 10, 5), answered("second"), answered("third")});
  {
    auto client =
        cassette_client(std::make_shared<Cassette>(folder.path()), CassetteMode::kRecord, inner);
    EXPECT_EQ(client->complete(question("a", 0))->text, "first");
    EXPECT_EQ(client->complete(question("a", 1))->text, "second");
    EXPECT_EQ(client->complete(question("b", 0))->text, "third");
    EXPECT_EQ(client->complete(question("a", 0))->text, "first");
  }
  EXPECT_EQ(inner->asked, 3u);
  auto client =
      cassette_client(std::make_shared<Cassette>(folder.path()), CassetteMode::kReplay, nullptr);
  EXPECT_EQ(client->complete(question("b", 0))->text, "third");
  EXPECT_EQ(client->complete(question("a", 1))->text, "second");
  EXPECT_EQ(client->complete(question("a", 0))->usage.input, 10u);
}

TEST(CassetteClient, ShowsWhereARequestDiffersFromTheRecordedOne) {
  TempDir folder("cassette-");
  auto cassette = std::make_shared<Cassette>(folder.path());
  cassette->record(question("line one\nline two"), {});
  auto client = cassette_client(cassette, CassetteMode::kStrict, nullptr);
  auto miss = client->complete(question("line one\nline 2"));
  ASSERT_FALSE(miss.has_value());
  EXPECT_EQ(miss.error().kind, FailureKind::kCassetteMiss);
  EXPECT_NE(miss.error().message.find("\"line 2\" here, \"line two\" recorded"), std::string::npos)
      << miss.error().message;
  EXPECT_NE(client->complete(question("line one\nline two", 3)).error().message.find("sample: 3"),
            std::string::npos);
}

TEST(CassetteClient, ReplaysByLabelUnlessItIsStrict) {
  TempDir folder("cassette-");
  auto cassette = std::make_shared<Cassette>(folder.path());
  Reply reply;
  reply.text = "recorded";
  Request request = question("after 1.00 ms");
  request.label = "task/0/1";
  cassette->record(request, reply);
  cassette = std::make_shared<Cassette>(folder.path());
  request.messages[0].text = "after 1.01 ms";
  auto lenient = cassette_client(cassette, CassetteMode::kReplay, nullptr);
  auto strict = cassette_client(cassette, CassetteMode::kStrict, nullptr);
  EXPECT_EQ(lenient->complete(request)->text, "recorded");
  EXPECT_EQ(strict->complete(request).error().kind, FailureKind::kCassetteMiss);
  request.label = "task/0/2";
  EXPECT_EQ(lenient->complete(request).error().kind, FailureKind::kCassetteMiss);
}

TEST(Cassette, IsKeptWhenPromptsAreEdited) {
  TempDir old_folder("cassette-"), new_folder("cassette-");
  auto old = std::make_shared<Cassette>(old_folder.path());
  Reply reply;
  reply.text = "kept";
  Request request = question("a");
  request.label = "task/0/0";
  old->record(request, reply);
  auto made = std::make_shared<Cassette>(new_folder.path());
  auto client = rekeying_client(old, made);
  request.system = "edited";
  EXPECT_EQ(client->complete(request)->text, "kept");
  EXPECT_EQ(made->find(request)->text, "kept");
  EXPECT_EQ(made->size(), 1u);
  request.label = "task/0/1";
  request.system = "edited again";
  EXPECT_EQ(client->complete(request).error().kind, FailureKind::kCassetteMiss);
}

TEST(Cassette, NamesTheLineThatIsWrong) {
  TempDir folder("cassette-");
  {
    Cassette cassette(folder.path());
    cassette.record(question("a"), {});
  }
  std::ofstream(folder.path() + "/replies.jsonl", std::ios::app) << "{\"request\": {}}\n";
  try {
    Cassette cassette(folder.path());
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("replies.jsonl:2"), std::string::npos) << error.message();
  }
}

TEST(Cassette, KeepsBytesThatAreNotText) {
  TempDir folder("cassette-");
  Reply reply;
  reply.text = "tab\t quote\" null";
  reply.text += '\0';
  {
    Cassette cassette(folder.path());
    cassette.record(question("a"), reply);
  }
  EXPECT_EQ(Cassette(folder.path()).find(question("a"))->text, reply.text);
}

}  // namespace
}  // namespace cb::llm
