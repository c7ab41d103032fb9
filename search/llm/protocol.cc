#include "search/llm/protocol.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace cb::llm {
namespace {

/// The words of providers for an account without money or quota. OpenAI: insufficient_quota,
/// billing_hard_limit_reached; Anthropic says it in the message only.
bool says_quota(const std::string& text) {
  for (const char* word :
       {"insufficient_quota", "billing_hard_limit", "exceeded your current quota",
        "credit balance is too low", "insufficient balance", "billing_not_active"}) {
    if (text.find(word) != std::string::npos) return true;
  }
  return false;
}

/// error.type, error.code and error.message of a JSON answer, or its first bytes.
std::string words_of(const std::string& body) {
  Json json = Json::parse(body, nullptr, false);
  if (!json.is_object() && !(json.is_array() && !json.empty())) return printable(body, 300);
  // Gemini's compatible endpoint wraps its errors in a list.
  const Json& outer = json.is_array() ? json.front() : json;
  auto error = outer.find("error");
  if (error == outer.end()) return printable(body, 300);
  if (error->is_string()) return printable(error->get<std::string>(), 300);
  std::string words;
  for (const char* key : {"type", "code", "status", "message"}) {
    auto found = error->find(key);
    if (found == error->end() || !found->is_string()) continue;
    words += (words.empty() ? "" : ": ") + found->get<std::string>();
  }
  return printable(words, 600);
}

}  // namespace

Completion ReplyReader::finish() {
  if (failure_) return tl::unexpected(*failure_);
  if (!is_complete_) {
    return tl::unexpected(
        Failure{FailureKind::kMalformed,
                fmt::format("the stream ended in the middle of an answer, after {} bytes of text",
                            reply_.text.size())});
  }
  return reply_;
}

Reply ReplyReader::cut_off() {
  reply_.finish = Finish::kCutOff;
  reply_.finish_reason = "cut_off";
  return reply_;
}

std::optional<Json> ReplyReader::parse(const EventStream::Event& event) {
  Json json = Json::parse(event.data, nullptr, false);
  if (json.is_object()) return json;
  fail(FailureKind::kMalformed, "an event that is no JSON object: " + printable(event.data, 200));
  return std::nullopt;
}

void ReplyReader::fail(FailureKind kind, const std::string& message) {
  // The first one is the cause.
  if (!failure_) failure_ = Failure{kind, message};
}

Failure failure_of(int status, const std::string& body, std::optional<double> retry_after_s) {
  std::string words = words_of(body);
  Failure failure{FailureKind::kBadRequest, fmt::format("HTTP {}: {}", status, words), status,
                  retry_after_s};
  if (says_quota(words) || status == 402) {
    failure.kind = FailureKind::kQuota;
    failure.message += "; `commbench resume` goes on when the account has quota again";
  } else if (status == 429) {
    failure.kind = FailureKind::kRateLimit;
  } else if (status == 401 || status == 403) {
    failure.kind = FailureKind::kAuthentication;
  } else if (status == 408 || status == 409 || status >= 500) {
    failure.kind = FailureKind::kServer;
  } else if (status == 404) {
    failure.message += "; is the name of the model right?";
  }
  return failure;
}

std::optional<double> parse_retry_after(const std::string& value, double now_unix) {
  std::string text(trim(value));
  char* end = nullptr;
  double seconds = std::strtod(text.c_str(), &end);
  if (!text.empty() && *end == '\0' && seconds >= 0) return seconds;
  auto date = static_cast<double>(::curl_getdate(text.c_str(), nullptr));
  if (date < 0) return std::nullopt;
  return std::max(0.0, date - now_unix);
}

}  // namespace cb::llm
