#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "search/llm/json_fields.h"
#include "search/llm/protocol.h"

namespace cb::llm {
namespace {

/// The protocol has no default for max_tokens.
constexpr uint64_t kDefaultMaxTokens = 32'000;

class MessagesReader : public ReplyReader {
 public:
  void take(const EventStream::Event& event) override {
    auto json = parse(event);
    if (!json) return;
    std::string type = text_at(*json, "type", event.type);
    if (type == "message_start") {
      take_start(*json);
    } else if (type == "content_block_delta") {
      if (auto delta = json->find("delta"); delta != json->end() && delta->is_object()) {
        if (text_at(*delta, "type") == "text_delta") reply_.text += text_at(*delta, "text");
      }
    } else if (type == "message_delta") {
      take_delta(*json);
    } else if (type == "message_stop") {
      is_complete_ = true;
    } else if (type == "error") {
      Failure failure = failure_of(500, event.data, std::nullopt);
      bool is_limit = event.data.find("rate_limit_error") != std::string::npos;
      fail(is_limit ? FailureKind::kRateLimit : failure.kind, failure.message);
    }
  }

 private:
  void take_start(const Json& json) {
    auto message = json.find("message");
    if (message == json.end() || !message->is_object()) return;
    reply_.model = text_at(*message, "model");
    reply_.request_id = text_at(*message, "id");
    auto usage = message->find("usage");
    if (usage == message->end() || !usage->is_object()) return;
    // input_tokens leaves out what the cache served or took.
    auto fresh = count_at(*usage, "input_tokens");
    reply_.usage.cached = count_at(*usage, "cache_read_input_tokens");
    reply_.usage.cache_write = count_at(*usage, "cache_creation_input_tokens");
    if (fresh) {
      reply_.usage.input =
          *fresh + reply_.usage.cached.value_or(0) + reply_.usage.cache_write.value_or(0);
    }
    reply_.usage.output = count_at(*usage, "output_tokens");
  }

  void take_delta(const Json& json) {
    if (auto delta = json.find("delta"); delta != json.end() && delta->is_object()) {
      std::string reason = text_at(*delta, "stop_reason");
      if (!reason.empty()) reply_.finish_reason = reason;
      if (reason == "max_tokens" || reason == "model_context_window_exceeded") {
        reply_.finish = Finish::kLength;
      } else if (reason == "refusal") {
        reply_.finish = Finish::kRefusal;
      }
    }
    if (auto output = count_at(json, "usage", "output_tokens")) reply_.usage.output = output;
  }
};

class AnthropicMessages : public Protocol {
 public:
  explicit AnthropicMessages(Endpoint endpoint) : endpoint_(std::move(endpoint)) {}

  HttpCall call(const Request& request) const override {
    Json body;
    body["model"] = endpoint_.model;
    body["max_tokens"] =
        request.max_output_tokens > 0 ? request.max_output_tokens : kDefaultMaxTokens;
    if (!request.system.empty()) {
      Json block;
      block["type"] = "text";
      block["text"] = request.system;
      block["cache_control"] = {{"type", "ephemeral"}};
      body["system"] = Json::array({block});
    }
    body["messages"] = Json::array();
    append_messages(body["messages"], request);
    body["stream"] = true;
    if (request.temperature) body["temperature"] = *request.temperature;
    HttpCall call{endpoint_.base_url + "/v1/messages", {}, dump_json(body)};
    call.headers.emplace_back("anthropic-version", "2023-06-01");
    if (!endpoint_.key.empty()) call.headers.emplace_back("x-api-key", endpoint_.key);
    return call;
  }

  std::unique_ptr<ReplyReader> reader() const override {
    return std::make_unique<MessagesReader>();
  }

 private:
  Endpoint endpoint_;
};

}  // namespace

std::unique_ptr<Protocol> anthropic_messages(Endpoint endpoint) {
  return std::make_unique<AnthropicMessages>(std::move(endpoint));
}

}  // namespace cb::llm
