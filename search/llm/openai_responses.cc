#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "search/llm/json_fields.h"
#include "search/llm/protocol.h"

namespace cb::llm {
namespace {

class ResponsesReader : public ReplyReader {
 public:
  void take(const EventStream::Event& event) override {
    auto json = parse(event);
    if (!json) return;
    std::string type = text_at(*json, "type", event.type);
    if (type == "response.output_text.delta") {
      reply_.text += text_at(*json, "delta");
    } else if (type == "response.refusal.delta") {
      reply_.finish = Finish::kRefusal;
    } else if (type == "error" || type == "response.failed") {
      Failure failure = failure_of(500, dump_json(error_of(*json)), std::nullopt);
      fail(failure.kind, failure.message);
    } else if (type == "response.completed" || type == "response.incomplete") {
      take_end(*json);
    }
  }

 private:
  /// {"error": ...} from either form of error event.
  static Json error_of(const Json& json) {
    auto response = json.find("response");
    const Json& holder = response != json.end() && response->is_object() ? *response : json;
    auto error = holder.find("error");
    return Json{{"error", error != holder.end() && error->is_object() ? *error : holder}};
  }

  void take_end(const Json& json) {
    auto response = json.find("response");
    if (response == json.end() || !response->is_object()) {
      fail(FailureKind::kMalformed, "an end event without its response");
      return;
    }
    is_complete_ = true;
    reply_.model = text_at(*response, "model");
    reply_.request_id = text_at(*response, "id");
    reply_.finish_reason = text_at(*response, "status");
    if (auto details = response->find("incomplete_details");
        details != response->end() && details->is_object()) {
      reply_.finish_reason = text_at(*details, "reason");
      reply_.finish =
          reply_.finish_reason == "max_output_tokens" ? Finish::kLength : Finish::kRefusal;
    }
    auto usage = response->find("usage");
    if (usage == response->end() || !usage->is_object()) return;
    reply_.usage.input = count_at(*usage, "input_tokens");
    reply_.usage.output = count_at(*usage, "output_tokens");
    reply_.usage.cached = count_at(*usage, "input_tokens_details", "cached_tokens");
    reply_.usage.reasoning = count_at(*usage, "output_tokens_details", "reasoning_tokens");
  }
};

class OpenAiResponses : public Protocol {
 public:
  explicit OpenAiResponses(Endpoint endpoint) : endpoint_(std::move(endpoint)) {}

  HttpCall call(const Request& request) const override {
    Json body;
    body["model"] = endpoint_.model;
    if (!request.system.empty()) body["instructions"] = request.system;
    body["input"] = Json::array();
    append_messages(body["input"], request);
    body["stream"] = true;
    // Nothing of a run is kept on the provider's side.
    body["store"] = false;
    if (request.max_output_tokens > 0) body["max_output_tokens"] = request.max_output_tokens;
    if (request.temperature) body["temperature"] = *request.temperature;
    HttpCall call{endpoint_.base_url + "/responses", {}, dump_json(body)};
    if (!endpoint_.key.empty())
      call.headers.emplace_back("Authorization", "Bearer " + endpoint_.key);
    return call;
  }

  std::unique_ptr<ReplyReader> reader() const override {
    return std::make_unique<ResponsesReader>();
  }

 private:
  Endpoint endpoint_;
};

}  // namespace

std::unique_ptr<Protocol> openai_responses(Endpoint endpoint) {
  return std::make_unique<OpenAiResponses>(std::move(endpoint));
}

}  // namespace cb::llm
