#include "search/llm/protocol.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace cb::llm {
namespace {

using Event = EventStream::Event;

Completion read(const Protocol& protocol, const std::vector<Event>& events) {
  auto reader = protocol.reader();
  for (const Event& event : events) reader->take(event);
  return reader->finish();
}

Request question() {
  Request request;
  request.system = "You write kernels.";
  request.messages = {{Message::Role::kUser, "a barrier"},
                      {Message::Role::kAssistant, "here"},
                      {Message::Role::kUser, "it hangs"}};
  request.max_output_tokens = 500;
  return request;
}

std::string header(const HttpCall& call, const std::string& name) {
  for (const auto& [key, value] : call.headers) {
    if (key == name) return value;
  }
  return "";
}

TEST(OpenAiChat, SendsTheSystemTextFirstAndTheKeyInAHeader) {
  auto protocol = openai_chat({"https://host/v1", "m", "sk-secret"}, true);
  HttpCall call = protocol->call(question());
  EXPECT_EQ(call.url, "https://host/v1/chat/completions");
  EXPECT_EQ(header(call, "Authorization"), "Bearer sk-secret");
  EXPECT_EQ(call.body.find("sk-secret"), std::string::npos);
  Json body = Json::parse(call.body);
  EXPECT_EQ(body["messages"][0]["role"], "system");
  EXPECT_EQ(body["messages"][3]["content"], "it hangs");
  EXPECT_EQ(body["max_completion_tokens"], 500);
  EXPECT_TRUE(body["stream_options"]["include_usage"]);
  EXPECT_FALSE(body.contains("temperature"));
}

TEST(OpenAiChat, AsksOtherServersWithTheOlderNameOfTheLimit) {
  Json body = Json::parse(openai_chat({"http://h", "m", ""}, false)->call(question()).body);
  EXPECT_EQ(body["max_tokens"], 500);
}

TEST(OpenAiChat, PutsTheAnswerTogether) {
  auto done = read(*openai_chat({}, true),
                   {{"", R"({"id":"x","model":"m-1","choices":[{"delta":{"content":"int "}}]})"},
                    {"", R"({"choices":[{"delta":{"content":"main"},"finish_reason":null}]})"},
                    {"", R"({"choices":[{"delta":{},"finish_reason":"length"}]})"},
                    {"", R"({"choices":[],"usage":{"prompt_tokens":90,"completion_tokens":7,
                        "prompt_tokens_details":{"cached_tokens":64},
                        "completion_tokens_details":{"reasoning_tokens":3}}})"},
                    {"", "[DONE]"}});
  ASSERT_TRUE(done.has_value());
  EXPECT_EQ(done->text, "int main");
  EXPECT_EQ(done->finish, Finish::kLength);
  EXPECT_EQ(done->model, "m-1");
  EXPECT_EQ(done->usage.input, 90u);
  EXPECT_EQ(done->usage.cached, 64u);
  EXPECT_EQ(done->usage.output, 7u);
  EXPECT_EQ(done->usage.reasoning, 3u);
}

TEST(OpenAiChat, TellsAnAnswerThatBreaksOffFromOneThatEnds) {
  auto done = read(*openai_chat({}, true), {{"", R"({"choices":[{"delta":{"content":"int"}}]})"}});
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().kind, FailureKind::kMalformed);
}

TEST(OpenAiChat, SurvivesFieldsOfOtherTypes) {
  for (const char* data :
       {"[]", "7", "{\"choices\": 3}", "{\"choices\": [7]}", "{\"choices\": [{\"delta\": 1}]}",
        "{\"usage\": [1], \"choices\": []}", "{\"model\": 4}", "{\"error\": \"text\"}", "{"}) {
    EXPECT_FALSE(read(*openai_chat({}, true), {{"", data}}).has_value()) << data;
  }
}

TEST(OpenAiResponses, ReadsDeltasAndTheEnd) {
  auto done = read(
      *openai_responses({}),
      {{"response.output_text.delta", R"({"type":"response.output_text.delta","delta":"a"})"},
       {"response.output_text.delta", R"({"type":"response.output_text.delta","delta":"b"})"},
       {"response.incomplete",
        R"({"type":"response.incomplete","response":{"id":"r","model":"m","status":"incomplete",
            "incomplete_details":{"reason":"max_output_tokens"},
            "usage":{"input_tokens":5,"output_tokens":2,"input_tokens_details":{"cached_tokens":4},
            "output_tokens_details":{"reasoning_tokens":1}}}})"}});
  ASSERT_TRUE(done.has_value());
  EXPECT_EQ(done->text, "ab");
  EXPECT_EQ(done->finish, Finish::kLength);
  EXPECT_EQ(done->usage.cached, 4u);
  EXPECT_EQ(done->usage.reasoning, 1u);
}

TEST(OpenAiResponses, ReportsAFailureInTheStream) {
  auto done = read(*openai_responses({}),
                   {{"response.failed", R"({"type":"response.failed","response":{"error":
                       {"code":"insufficient_quota","message":"no money"}}})"}});
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().kind, FailureKind::kQuota);
  EXPECT_NE(done.error().message.find("no money"), std::string::npos);
}

TEST(Anthropic, MarksTheSystemTextForTheCache) {
  HttpCall call = anthropic_messages({"https://h", "m", "sk"})->call(question());
  EXPECT_EQ(call.url, "https://h/v1/messages");
  EXPECT_EQ(header(call, "x-api-key"), "sk");
  Json body = Json::parse(call.body);
  EXPECT_EQ(body["system"][0]["cache_control"]["type"], "ephemeral");
  EXPECT_EQ(body["max_tokens"], 500);
  EXPECT_EQ(body["messages"].size(), 3u);
}

TEST(Anthropic, CountsCachedTokensAsInput) {
  auto done = read(*anthropic_messages({}),
                   {{"message_start", R"({"type":"message_start","message":{"id":"i","model":"m",
                        "usage":{"input_tokens":10,"cache_read_input_tokens":100,
                        "cache_creation_input_tokens":20,"output_tokens":1}}})"},
                    {"ping", R"({"type":"ping"})"},
                    {"content_block_delta", R"({"type":"content_block_delta","delta":
                        {"type":"thinking_delta","thinking":"hm"}})"},
                    {"content_block_delta", R"({"type":"content_block_delta","delta":
                        {"type":"text_delta","text":"done"}})"},
                    {"message_delta", R"({"type":"message_delta","delta":{"stop_reason":"refusal"},
                        "usage":{"output_tokens":9}})"},
                    {"message_stop", R"({"type":"message_stop"})"}});
  ASSERT_TRUE(done.has_value());
  EXPECT_EQ(done->text, "done");
  EXPECT_EQ(done->finish, Finish::kRefusal);
  EXPECT_EQ(done->usage.input, 130u);
  EXPECT_EQ(done->usage.cached, 100u);
  EXPECT_EQ(done->usage.output, 9u);
}

TEST(Failures, ComeFromStatusAndWords) {
  struct Row {
    int status;
    const char* body;
    FailureKind kind;
  };
  const Row rows[] = {
      {429, R"({"error":{"code":"rate_limit_exceeded"}})", FailureKind::kRateLimit},
      {429, R"({"error":{"code":"insufficient_quota"}})", FailureKind::kQuota},
      {400, R"({"type":"error","error":{"message":"Your credit balance is too low"}})",
       FailureKind::kQuota},
      {401, "{}", FailureKind::kAuthentication},
      {404, R"({"error":{"message":"no such model"}})", FailureKind::kBadRequest},
      {408, "", FailureKind::kServer},
      {503, "<html>", FailureKind::kServer},
      {529, R"({"error":{"type":"overloaded_error"}})", FailureKind::kServer},
      {400, R"([{"error":{"message":"listed"}}])", FailureKind::kBadRequest}};
  for (const Row& row : rows) {
    EXPECT_EQ(failure_of(row.status, row.body, std::nullopt).kind, row.kind)
        << row.status << " " << row.body;
  }
  EXPECT_NE(failure_of(400, rows[8].body, std::nullopt).message.find("listed"), std::string::npos);
}

TEST(Failures, ShowNoControlCharacters) {
  EXPECT_EQ(failure_of(500, "\x1b[31mred", std::nullopt).message.find('\x1b'), std::string::npos);
}

TEST(RetryAfter, IsSecondsOrADate) {
  EXPECT_EQ(parse_retry_after("2.5", 0), 2.5);
  EXPECT_EQ(parse_retry_after("Thu, 01 Jan 1970 00:01:40 GMT", 40), 60);
  EXPECT_EQ(parse_retry_after("Thu, 01 Jan 1970 00:01:40 GMT", 400), 0);
  EXPECT_EQ(parse_retry_after("soon", 0), std::nullopt);
  EXPECT_EQ(parse_retry_after("-1", 0), std::nullopt);
}

}  // namespace
}  // namespace cb::llm
