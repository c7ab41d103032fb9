#pragma once

// Reading the JSON of providers, which may hold anything: a field of another type is one that is
// not there.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "search/llm/completion.h"

namespace cb::llm {

inline std::string text_at(const Json& json, const char* key, const std::string& fallback = "") {
  auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : fallback;
}

inline std::optional<uint64_t> count_at(const Json& json, const char* key) {
  auto found = json.find(key);
  if (found == json.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<uint64_t>();
}

inline std::optional<uint64_t> count_at(const Json& json, const char* outer, const char* key) {
  auto found = json.find(outer);
  if (found == json.end() || !found->is_object()) return std::nullopt;
  return count_at(*found, key);
}

/// The conversation as all three protocols write it.
inline void append_messages(Json& list, const Request& request) {
  for (const Message& message : request.messages) {
    list.push_back({{"role", message.role == Message::Role::kUser ? "user" : "assistant"},
                    {"content", message.text}});
  }
}

}  // namespace cb::llm
