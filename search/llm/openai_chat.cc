#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "search/llm/json_fields.h"
#include "search/llm/protocol.h"

namespace cb::llm {
namespace {

class ChatReader : public ReplyReader {
 public:
  void take(const EventStream::Event& event) override {
    if (event.data == "[DONE]") {
      is_complete_ = true;
      return;
    }
    auto json = parse(event);
    if (!json) return;
    if (auto error = json->find("error"); error != json->end() && !error->is_null()) {
      Failure failure = failure_of(500, event.data, std::nullopt);
      fail(failure.kind, failure.message);
      return;
    }
    reply_.model = text_at(*json, "model", reply_.model);
    reply_.request_id = text_at(*json, "id", reply_.request_id);
    take_usage(*json);
    auto choices = json->find("choices");
    if (choices == json->end() || !choices->is_array() || choices->empty()) return;
    const Json& choice = choices->front();
    if (auto delta = choice.find("delta"); delta != choice.end() && delta->is_object()) {
      reply_.text += text_at(*delta, "content");
      if (!text_at(*delta, "refusal").empty()) refused_ = true;
    }
    take_finish(text_at(choice, "finish_reason"));
  }

 private:
  void take_usage(const Json& json) {
    auto usage = json.find("usage");
    if (usage == json.end() || !usage->is_object()) return;
    reply_.usage.input = count_at(*usage, "prompt_tokens");
    reply_.usage.output = count_at(*usage, "completion_tokens");
    reply_.usage.cached = count_at(*usage, "prompt_tokens_details", "cached_tokens");
    reply_.usage.reasoning = count_at(*usage, "completion_tokens_details", "reasoning_tokens");
  }

  void take_finish(const std::string& reason) {
    if (reason.empty()) return;
    reply_.finish_reason = reason;
    // Some servers end the stream without [DONE].
    is_complete_ = true;
    if (reason == "length") {
      reply_.finish = Finish::kLength;
    } else if (reason == "content_filter" || refused_) {
      reply_.finish = Finish::kRefusal;
    }
  }

  bool refused_ = false;
};

class OpenAiChat : public Protocol {
 public:
  OpenAiChat(Endpoint endpoint, bool official)
      : endpoint_(std::move(endpoint)), official_(official) {}

  HttpCall call(const Request& request) const override {
    Json body;
    body["model"] = endpoint_.model;
    body["messages"] = Json::array();
    if (!request.system.empty()) {
      body["messages"].push_back({{"role", "system"}, {"content", request.system}});
    }
    append_messages(body["messages"], request);
    body["stream"] = true;
    body["stream_options"] = {{"include_usage", true}};
    if (request.max_output_tokens > 0) {
      body[official_ ? "max_completion_tokens" : "max_tokens"] = request.max_output_tokens;
    }
    if (request.temperature) body["temperature"] = *request.temperature;
    HttpCall call{endpoint_.base_url + "/chat/completions", {}, dump_json(body)};
    if (!endpoint_.key.empty())
      call.headers.emplace_back("Authorization", "Bearer " + endpoint_.key);
    return call;
  }

  std::unique_ptr<ReplyReader> reader() const override { return std::make_unique<ChatReader>(); }

 private:
  Endpoint endpoint_;
  bool official_;
};

}  // namespace

std::unique_ptr<Protocol> openai_chat(Endpoint endpoint, bool official) {
  return std::make_unique<OpenAiChat>(std::move(endpoint), official);
}

}  // namespace cb::llm
