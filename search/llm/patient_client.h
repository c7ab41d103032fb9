#pragma once

#include <memory>

#include "search/llm/client.h"

namespace cb::llm {

struct PatienceOptions {
  int max_attempts = 8;
  double first_backoff_s = 1;
  double longest_backoff_s = 60;
  double deadline_s = 1800;        ///< of one request with all its attempts
  double requests_per_minute = 0;  ///< 0: no limit of ours
  double tokens_per_minute = 0;    ///< 0: no limit of ours
  int breaker_failures = 20;       ///< in a row, over all requests: the provider is gone
};

/// Asks again where that can help: full-jitter exponential backoff, or what Retry-After says; never
/// faster than the limits. After `breaker_failures` transient failures in a row every call fails at
/// once with what failed last, so that a run stops instead of waiting for ever.
std::unique_ptr<Client> patient_client(std::shared_ptr<Client> inner, PatienceOptions options,
                                       std::shared_ptr<Clock> clock);

/// Tokens that flow in at a rate and are taken in advance of what they pay for.
class TokenBucket {
 public:
  /// `per_minute` 0: unlimited.
  TokenBucket(double per_minute, double now)
      : rate_(per_minute / 60), level_(per_minute), at_(now) {}

  /// Takes `amount`, more than is there if need be; returns the seconds to wait before using it.
  double take(double amount, double now);
  /// Gives back (or takes, if negative) what an estimate was wrong by.
  void correct(double amount) { level_ += amount; }

 private:
  double rate_;
  double level_;
  double at_;
};

/// A rough number of tokens for `bytes` of English or code: 4 bytes each, the rule of thumb of
/// OpenAI's documentation ("What are tokens and how to count them?").
uint64_t estimated_tokens(uint64_t bytes);
uint64_t estimated_input_tokens(const Request& request);

}  // namespace cb::llm
