#include "search/llm/mock/wire.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace cb::llm {
namespace {

constexpr int64_t kCreated = 1'700'000'000;
constexpr const char* kId = "mock-1";

Error bad(const std::string& what) { return Error(ErrorCode::kUsage, what); }

/// Text that is a string or a list of {"type": ..., "text": ...}.
std::string flat_text(const Json& content) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) throw bad("content must be a string or a list of parts");
  std::string text;
  for (const Json& part : content) {
    if (!part.is_object() || !part.contains("text") || !part["text"].is_string()) {
      throw bad("only parts with text are understood");
    }
    text += part["text"].get<std::string>();
  }
  return text;
}

std::string messages_text(const Json& messages) {
  if (!messages.is_array() || messages.empty()) throw bad("messages must be a list, not empty");
  std::string text;
  for (const Json& message : messages) {
    if (!message.is_object() || !message.contains("role") || !message.contains("content")) {
      throw bad("a message has a role and content");
    }
    text += flat_text(message["content"]) + "\n";
  }
  return text;
}

std::string event(const std::string& type, const Json& data) {
  return (type.empty() ? "" : "event: " + type + "\n") + "data: " + dump_json(data) + "\n\n";
}

/// The text in pieces that do not cut a UTF-8 sequence.
std::vector<std::string> pieces(const std::string& text, uint64_t bytes) {
  std::vector<std::string> list;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.size(), at + bytes);
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) ++end;
    list.push_back(text.substr(at, end - at));
    at = end;
  }
  return list;
}

// Chat completions.

Json chat_usage(const MockUsage& usage) {
  return {{"prompt_tokens", usage.input},
          {"completion_tokens", usage.output},
          {"total_tokens", usage.input + usage.output},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached}}},
          {"completion_tokens_details", {{"reasoning_tokens", 0}}}};
}

Json chat_head(const char* object, const MockRequest& request) {
  Json json;
  json["id"] = kId;
  json["object"] = object;
  json["created"] = kCreated;
  json["model"] = request.model;
  return json;
}

Json chat_whole(const MockRequest& request, const ScriptedReply& reply, const MockUsage& usage) {
  bool refuses = reply.fault == Fault::kRefusal;
  Json message{{"role", "assistant"}};
  message["content"] = refuses ? Json(nullptr) : Json(reply.text);
  message["refusal"] = refuses ? Json(reply.text) : Json(nullptr);
  Json json = chat_head("chat.completion", request);
  Json choice{{"index", 0}, {"message", message}, {"logprobs", nullptr}};
  choice["finish_reason"] = refuses ? "stop" : reply.finish;
  json["choices"] = Json::array({choice});
  json["usage"] = chat_usage(usage);
  return json;
}

Json chat_chunk(const MockRequest& request, const Json& delta, const Json& finish) {
  Json json = chat_head("chat.completion.chunk", request);
  Json choice{{"index", 0}, {"delta", delta}, {"logprobs", nullptr}};
  choice["finish_reason"] = finish;
  json["choices"] = Json::array({choice});
  return json;
}

std::vector<std::string> chat_events(const MockRequest& request, const ScriptedReply& reply,
                                     const MockUsage& usage) {
  const char* field = reply.fault == Fault::kRefusal ? "refusal" : "content";
  std::vector<std::string> events;
  events.push_back(
      event("", chat_chunk(request, Json{{"role", "assistant"}, {"content", ""}}, nullptr)));
  for (const std::string& piece : pieces(reply.text, reply.chunk_bytes)) {
    events.push_back(event("", chat_chunk(request, Json{{field, piece}}, nullptr)));
  }
  events.push_back(event("", chat_chunk(request, Json::object(), reply.finish)));
  if (request.wants_usage) {
    Json json = chat_head("chat.completion.chunk", request);
    json["choices"] = Json::array();
    json["usage"] = chat_usage(usage);
    events.push_back(event("", json));
  }
  events.push_back("data: [DONE]\n\n");
  return events;
}

// Responses.

Json response_object(const MockRequest& request, const ScriptedReply& reply, const MockUsage& usage,
                     bool is_done) {
  bool is_cut = reply.finish == "length";
  Json json;
  json["id"] = kId;
  json["object"] = "response";
  json["created_at"] = kCreated;
  json["status"] = !is_done ? "in_progress" : is_cut ? "incomplete" : "completed";
  json["error"] = nullptr;
  json["incomplete_details"] =
      is_done && is_cut ? Json{{"reason", "max_output_tokens"}} : Json(nullptr);
  json["instructions"] = nullptr;
  json["metadata"] = Json::object();
  json["model"] = request.model;
  json["output"] = Json::array();
  if (is_done) {
    Json part = reply.fault == Fault::kRefusal
                    ? Json{{"type", "refusal"}, {"refusal", reply.text}}
                    : Json{{"type", "output_text"}, {"text", reply.text}};
    if (reply.fault != Fault::kRefusal) part["annotations"] = Json::array();
    Json item{{"type", "message"}, {"id", "item-1"}, {"status", "completed"}};
    item["role"] = "assistant";
    item["content"] = Json::array({part});
    json["output"].push_back(item);
  }
  json["parallel_tool_calls"] = true;
  json["temperature"] = 1.0;
  json["tool_choice"] = "auto";
  json["tools"] = Json::array();
  json["top_p"] = 1.0;
  json["usage"] = nullptr;
  if (is_done) {
    json["usage"] = {{"input_tokens", usage.input},
                     {"input_tokens_details", {{"cached_tokens", usage.cached}}},
                     {"output_tokens", usage.output},
                     {"output_tokens_details", {{"reasoning_tokens", 0}}},
                     {"total_tokens", usage.input + usage.output}};
  }
  return json;
}

std::vector<std::string> response_events(const MockRequest& request, const ScriptedReply& reply,
                                         const MockUsage& usage) {
  std::vector<std::string> events;
  int64_t sequence = 0;
  auto add = [&](const std::string& type, Json data) {
    Json json{{"type", type}, {"sequence_number", sequence++}};
    json.update(data);
    events.push_back(event(type, json));
  };
  add("response.created", {{"response", response_object(request, reply, usage, false)}});
  const char* type =
      reply.fault == Fault::kRefusal ? "response.refusal.delta" : "response.output_text.delta";
  for (const std::string& piece : pieces(reply.text, reply.chunk_bytes)) {
    Json data{{"item_id", "item-1"}, {"output_index", 0}, {"content_index", 0}, {"delta", piece}};
    data["logprobs"] = Json::array();
    add(type, data);
  }
  add(reply.finish == "length" ? "response.incomplete" : "response.completed",
      {{"response", response_object(request, reply, usage, true)}});
  return events;
}

// Messages.

const char* stop_reason(const ScriptedReply& reply) {
  if (reply.fault == Fault::kRefusal) return "refusal";
  return reply.finish == "length" ? "max_tokens" : "end_turn";
}

Json message_usage(const MockUsage& usage) {
  return {{"input_tokens", usage.input - usage.cached},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", usage.cached},
          {"output_tokens", usage.output}};
}

Json message_object(const MockRequest& request, const MockUsage& usage) {
  Json json;
  json["id"] = kId;
  json["type"] = "message";
  json["role"] = "assistant";
  json["model"] = request.model;
  json["content"] = Json::array();
  json["stop_reason"] = nullptr;
  json["stop_sequence"] = nullptr;
  json["usage"] = message_usage(usage);
  return json;
}

Json message_whole(const MockRequest& request, const ScriptedReply& reply, const MockUsage& usage) {
  Json json = message_object(request, usage);
  json["content"].push_back({{"type", "text"}, {"text", reply.text}});
  json["stop_reason"] = stop_reason(reply);
  return json;
}

std::vector<std::string> message_events(const MockRequest& request, const ScriptedReply& reply,
                                        const MockUsage& usage) {
  std::vector<std::string> events;
  auto add = [&](const std::string& type, Json data) {
    Json json{{"type", type}};
    json.update(data);
    events.push_back(event(type, json));
  };
  add("message_start", {{"message", message_object(request, {usage.input, usage.cached, 1})}});
  add("content_block_start", {{"index", 0}, {"content_block", {{"type", "text"}, {"text", ""}}}});
  add("ping", Json::object());
  for (const std::string& piece : pieces(reply.text, reply.chunk_bytes)) {
    add("content_block_delta",
        {{"index", 0}, {"delta", {{"type", "text_delta"}, {"text", piece}}}});
  }
  add("content_block_stop", {{"index", 0}});
  add("message_delta",
      {{"delta", {{"stop_reason", stop_reason(reply)}, {"stop_sequence", nullptr}}},
       {"usage", {{"output_tokens", usage.output}}}});
  add("message_stop", Json::object());
  return events;
}

}  // namespace

MockRequest read_request(WireFormat format, const std::string& body) {
  Json json = Json::parse(body, nullptr, false);
  if (!json.is_object()) throw bad("the body must be a JSON object");
  if (!json.contains("model") || !json["model"].is_string()) throw bad("model is missing");
  MockRequest request{.model = json["model"].get<std::string>()};
  if (json.contains("stream") && json["stream"].is_boolean())
    request.stream = json["stream"].get<bool>();
  switch (format) {
    case WireFormat::kChat:
      request.prompt = messages_text(json.value("messages", Json()));
      if (json.contains("stream_options") && json["stream_options"].is_object()) {
        request.wants_usage = json["stream_options"].value("include_usage", false);
      }
      break;
    case WireFormat::kResponses:
      if (json.contains("instructions") && json["instructions"].is_string()) {
        request.prompt = json["instructions"].get<std::string>() + "\n";
      }
      if (!json.contains("input")) throw bad("input is missing");
      request.prompt += json["input"].is_string() ? json["input"].get<std::string>()
                                                  : messages_text(json["input"]);
      break;
    case WireFormat::kMessages:
      if (!json.contains("max_tokens") || !json["max_tokens"].is_number_unsigned()) {
        throw bad("max_tokens: field required");
      }
      if (json.contains("system")) request.prompt = flat_text(json["system"]) + "\n";
      request.prompt += messages_text(json.value("messages", Json()));
      break;
  }
  return request;
}

Json whole_reply(WireFormat format, const MockRequest& request, const ScriptedReply& reply,
                 const MockUsage& usage) {
  switch (format) {
    case WireFormat::kResponses:
      return response_object(request, reply, usage, true);
    case WireFormat::kMessages:
      return message_whole(request, reply, usage);
    case WireFormat::kChat:
      break;
  }
  return chat_whole(request, reply, usage);
}

std::vector<std::string> streamed_reply(WireFormat format, const MockRequest& request,
                                        const ScriptedReply& reply, const MockUsage& usage) {
  switch (format) {
    case WireFormat::kResponses:
      return response_events(request, reply, usage);
    case WireFormat::kMessages:
      return message_events(request, reply, usage);
    case WireFormat::kChat:
      break;
  }
  return chat_events(request, reply, usage);
}

Json error_reply(WireFormat format, const std::string& type, const std::string& message) {
  Json error{{"type", type}, {"message", message}};
  if (format == WireFormat::kMessages) return {{"type", "error"}, {"error", error}};
  error["param"] = nullptr;
  error["code"] = type;
  return {{"error", error}};
}

}  // namespace cb::llm
