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
  auto client = cassette_client(cassette, CassetteMode::kReplay, nullptr);
  auto miss = client->complete(question("line one\nline 2"));
  ASSERT_FALSE(miss.has_value());
  EXPECT_EQ(miss.error().kind, FailureKind::kCassetteMiss);
  EXPECT_NE(miss.error().message.find("\"line 2\" here, \"line two\" recorded"), std::string::npos)
      << miss.error().message;
  EXPECT_NE(client->complete(question("line one\nline two", 3)).error().message.find("sample: 3"),
            std::string::npos);
}

TEST(Cassette, IsKeptWhenOnlyTheSystemTextWasEdited) {
  TempDir folder("cassette-");
  {
    Cassette cassette(folder.path());
    Reply reply;
    reply.text = "kept";
    cassette.record(question("a"), reply);
    EXPECT_EQ(cassette.rekey("new system"), 1u);
  }
  Cassette cassette(folder.path());
  Request request = question("a");
  EXPECT_FALSE(cassette.find(request).has_value());
  request.system = "new system";
  EXPECT_EQ(cassette.find(request)->text, "kept");
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
