#include "search/llm/completion.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

namespace cb::llm {
namespace {

constexpr std::array kFinishNames = {"stop", "length", "refusal", "cut_off"};

Json optional_json(const std::optional<uint64_t>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::optional<uint64_t> optional_count(const Json& json, const char* key) {
  auto found = json.find(key);
  if (found == json.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<uint64_t>();
}

}  // namespace

const char* to_string(Finish finish) { return kFinishNames[static_cast<size_t>(finish)]; }

const char* to_string(FailureKind kind) {
  constexpr std::array kNames = {"rate_limit", "quota",   "authentication", "bad_request",
                                 "server",     "network", "timeout",        "malformed",
                                 "too_large",  "budget",  "cassette_miss",  "command"};
  return kNames[static_cast<size_t>(kind)];
}

bool is_transient(FailureKind kind) {
  switch (kind) {
    case FailureKind::kRateLimit:
    case FailureKind::kServer:
    case FailureKind::kNetwork:
    case FailureKind::kTimeout:
    case FailureKind::kMalformed:
      return true;
    default:
      return false;
  }
}

Json to_json(const Request& request) {
  Json json;
  json["system"] = request.system;
  json["messages"] = Json::array();
  for (const Message& message : request.messages) {
    json["messages"].push_back(
        {{"role", message.role == Message::Role::kUser ? "user" : "assistant"},
         {"text", message.text}});
  }
  json["max_output_tokens"] = request.max_output_tokens;
  json["temperature"] = request.temperature ? Json(*request.temperature) : Json(nullptr);
  json["sample"] = request.sample;
  return json;
}

Json to_json(const Reply& reply) {
  Json json;
  json["text"] = reply.text;
  json["finish"] = to_string(reply.finish);
  json["finish_reason"] = reply.finish_reason;
  json["model"] = reply.model;
  json["request_id"] = reply.request_id;
  json["usage"] = {{"input", optional_json(reply.usage.input)},
                   {"cached", optional_json(reply.usage.cached)},
                   {"cache_write", optional_json(reply.usage.cache_write)},
                   {"output", optional_json(reply.usage.output)},
                   {"reasoning", optional_json(reply.usage.reasoning)}};
  json["rate_limited"] = reply.rate_limited;
  return json;
}

Reply reply_from_json(const Json& json) {
  try {
    Reply reply;
    reply.text = json.at("text").get<std::string>();
    std::string finish = json.at("finish").get<std::string>();
    size_t index = 0;
    while (index < kFinishNames.size() && finish != kFinishNames[index]) ++index;
    if (index == kFinishNames.size()) {
      throw Error(ErrorCode::kConfig, fmt::format("a reply with finish \"{}\"", finish));
    }
    reply.finish = static_cast<Finish>(index);
    reply.finish_reason = json.value("finish_reason", "");
    reply.model = json.value("model", "");
    reply.request_id = json.value("request_id", "");
    reply.rate_limited = json.value("rate_limited", 0u);
    const Json& usage = json.at("usage");
    reply.usage = {.input = optional_count(usage, "input"),
                   .cached = optional_count(usage, "cached"),
                   .cache_write = optional_count(usage, "cache_write"),
                   .output = optional_count(usage, "output"),
                   .reasoning = optional_count(usage, "reasoning")};
    return reply;
  } catch (const Json::exception& error) {
    throw Error(ErrorCode::kConfig, fmt::format("a stored reply is incomplete: {}", error.what()));
  }
}

}  // namespace cb::llm
