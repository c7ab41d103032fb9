#pragma once

// What is asked of a language model and what it answers, whoever serves it.

#include <cstdint>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "base/json.h"

namespace cb::llm {

struct Message {
  enum class Role { kUser, kAssistant };
  Role role = Role::kUser;
  std::string text;
};

struct Request {
  /// What never changes between requests comes first, byte for byte, so that providers can cache
  /// it.
  std::string system;
  std::vector<Message> messages;
  uint64_t max_output_tokens = 0;     ///< 0: the provider's own limit
  std::optional<double> temperature;  ///< many models refuse one
  uint32_t sample = 0;                ///< which of several answers to the same question; not sent
  std::string label;                  ///< what it is for, for people and `cassette rekey`; not sent
};

/// Tokens as the provider counts them; nothing where it does not say.
struct Usage {
  std::optional<uint64_t> input;        ///< cached ones included
  std::optional<uint64_t> cached;       ///< of `input`, read from the provider's cache
  std::optional<uint64_t> cache_write;  ///< of `input`, written to it, where that costs extra
  std::optional<uint64_t> output;       ///< reasoning included
  std::optional<uint64_t> reasoning;    ///< of `output`
};

enum class Finish {
  kStop,     ///< the model ended its answer
  kLength,   ///< the output limit was reached
  kRefusal,  ///< the model or a filter declined
  kCutOff,   ///< we stopped reading: Limits
};
const char* to_string(Finish finish);

struct Reply {
  std::string text;
  Finish finish = Finish::kStop;
  std::string finish_reason;  ///< in the provider's words
  std::string model;          ///< that the provider says answered
  std::string request_id;     ///< for the provider's support
  Usage usage;
  uint32_t rate_limited = 0;  ///< times that the provider put the request off first
};

enum class FailureKind {
  kRateLimit,       ///< too many requests: later
  kQuota,           ///< no money or quota left: the run stops and can be resumed
  kAuthentication,  ///< the key is missing or wrong
  kBadRequest,      ///< the provider refuses the request; asking again does not help
  kServer,          ///< 5xx, overloaded
  kNetwork,         ///< no connection, or it broke
  kTimeout,         ///< no byte for too long, or too long in all
  kMalformed,       ///< not the protocol
  kTooLarge,        ///< more bytes than Limits allow
  kBudget,          ///< a limit of the run would be passed
  kCassetteMiss,    ///< replaying, and the tape has no such request
  kCommand,         ///< a cmd: program failed
};
const char* to_string(FailureKind kind);

struct Failure {
  FailureKind kind = FailureKind::kNetwork;
  std::string message;  ///< what, where, and the next step; never a key
  int http_status = 0;  ///< 0: none came
  std::optional<double> retry_after_s;
};

/// Whether the same request may succeed later.
bool is_transient(FailureKind kind);

using Completion = tl::expected<Reply, Failure>;

/// The request as one canonical value, for cassettes and journals.
Json to_json(const Request& request);
Json to_json(const Reply& reply);
/// Throws Error(kConfig) where `json` is not what to_json writes.
Reply reply_from_json(const Json& json);

}  // namespace cb::llm
