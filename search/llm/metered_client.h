#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "search/llm/client.h"
#include "search/llm/prices.h"

namespace cb::llm {

/// What a run may spend.
struct Budget {
  std::optional<double> max_cost_usd;
  std::optional<uint64_t> max_tokens;  ///< input and output together
};

struct Spending {
  uint64_t requests = 0;
  uint64_t failures = 0;
  uint64_t input_tokens = 0;
  uint64_t cached_tokens = 0;
  uint64_t output_tokens = 0;
  std::optional<double> cost_usd = 0.0;  ///< nothing once a reply's cost was not known
  uint64_t uncounted = 0;                ///< replies without token counts

  /// Of the input tokens; nothing before any were counted.
  std::optional<double> cached_ratio() const;
};

/// Counts what a run spends, from several threads.
class Meter {
 public:
  /// `max_cost_usd` without a known price is an Error(kUsage): it could not be kept.
  Meter(Budget budget, const Price* price);

  /// Reserves the most that the request can cost; a failure says which limit it would pass.
  std::optional<Failure> reserve(const Request& request);
  /// Replaces the reservation by what it did cost. `done` nullptr: nothing.
  void settle(const Request& request, const Reply* done);
  /// What was spent before a resumed run went on.
  void add(const Spending& earlier);
  Spending spending() const;

 private:
  struct Estimate {
    uint64_t tokens = 0;
    double cost_usd = 0;
  };
  Estimate estimate(const Request& request) const;

  Budget budget_;
  std::optional<Price> price_;
  mutable std::mutex mutex_;
  Spending spent_;
  double charged_usd_ = 0;  ///< as `spent_`, replies of unknown cost at their estimate
  Estimate reserved_;
};

/// Refuses what the budget does not allow, before it is sent.
std::unique_ptr<Client> metered_client(std::shared_ptr<Client> inner, std::shared_ptr<Meter> meter);

}  // namespace cb::llm
