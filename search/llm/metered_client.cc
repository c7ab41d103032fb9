#include "search/llm/metered_client.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "search/llm/patient_client.h"

namespace cb::llm {
namespace {

/// Of a request that names no limit, for the reservation.
constexpr uint64_t kAssumedOutputTokens = 32'000;

class MeteredClient : public Client {
 public:
  MeteredClient(std::shared_ptr<Client> inner, std::shared_ptr<Meter> meter)
      : inner_(std::move(inner)), meter_(std::move(meter)) {}

  Completion complete(const Request& request) override {
    if (auto failure = meter_->reserve(request)) return tl::unexpected(std::move(*failure));
    Completion done = inner_->complete(request);
    meter_->settle(request, done ? &*done : nullptr);
    return done;
  }

 private:
  std::shared_ptr<Client> inner_;
  std::shared_ptr<Meter> meter_;
};

}  // namespace

std::optional<double> Spending::cached_ratio() const {
  if (input_tokens == 0) return std::nullopt;
  return static_cast<double>(cached_tokens) / static_cast<double>(input_tokens);
}

Meter::Meter(Budget budget, const Price* price) : budget_(budget) {
  if (price != nullptr) price_ = *price;
  if (budget_.max_cost_usd && !price_) {
    throw Error(ErrorCode::kUsage,
                "--max-cost needs a known price: add the model to the price table, or limit the "
                "run with --max-tokens");
  }
}

Meter::Estimate Meter::estimate(const Request& request) const {
  Estimate estimate;
  uint64_t input = estimated_input_tokens(request);
  uint64_t output =
      request.max_output_tokens > 0 ? request.max_output_tokens : kAssumedOutputTokens;
  estimate.tokens = input + output;
  if (price_) {
    estimate.cost_usd = *cost_usd(&*price_, {.input = input, .output = output});
  }
  return estimate;
}

std::optional<Failure> Meter::reserve(const Request& request) {
  std::lock_guard lock(mutex_);
  Estimate wanted = estimate(request);
  uint64_t tokens = spent_.input_tokens + spent_.output_tokens + reserved_.tokens + wanted.tokens;
  if (budget_.max_tokens && tokens > *budget_.max_tokens) {
    return Failure{FailureKind::kBudget,
                   fmt::format("--max-tokens {}: {} are spent or asked for, and this request may "
                               "take {} more",
                               *budget_.max_tokens, tokens - wanted.tokens, wanted.tokens)};
  }
  double cost = charged_usd_ + reserved_.cost_usd + wanted.cost_usd;
  if (budget_.max_cost_usd && cost > *budget_.max_cost_usd) {
    return Failure{FailureKind::kBudget,
                   fmt::format("--max-cost {:.2f}: {:.4f} USD are spent or asked for, and this "
                               "request may cost {:.4f} more",
                               *budget_.max_cost_usd, cost - wanted.cost_usd, wanted.cost_usd)};
  }
  reserved_.tokens += wanted.tokens;
  reserved_.cost_usd += wanted.cost_usd;
  return std::nullopt;
}

void Meter::settle(const Request& request, const Reply* done) {
  std::lock_guard lock(mutex_);
  Estimate wanted = estimate(request);
  reserved_.tokens -= wanted.tokens;
  reserved_.cost_usd = std::max(0.0, reserved_.cost_usd - wanted.cost_usd);
  ++spent_.requests;
  if (done == nullptr) {
    ++spent_.failures;
    return;
  }
  const Usage& usage = done->usage;
  if (!usage.input || !usage.output) ++spent_.uncounted;
  // What is not counted is taken to be what was estimated, so that a limit holds.
  spent_.input_tokens += usage.input.value_or(estimated_input_tokens(request));
  spent_.output_tokens += usage.output.value_or(estimated_tokens(done->text.size()));
  spent_.cached_tokens += usage.cached.value_or(0);
  auto cost = cost_usd(price_ ? &*price_ : nullptr, usage);
  charged_usd_ += cost.value_or(wanted.cost_usd);
  if (!cost) {
    spent_.cost_usd = std::nullopt;
  } else if (spent_.cost_usd) {
    *spent_.cost_usd += *cost;
  }
}

void Meter::add(const Spending& earlier) {
  std::lock_guard lock(mutex_);
  spent_.requests += earlier.requests;
  spent_.failures += earlier.failures;
  spent_.input_tokens += earlier.input_tokens;
  spent_.cached_tokens += earlier.cached_tokens;
  spent_.output_tokens += earlier.output_tokens;
  spent_.uncounted += earlier.uncounted;
  charged_usd_ += earlier.cost_usd.value_or(0);
  if (!earlier.cost_usd) {
    spent_.cost_usd = std::nullopt;
  } else if (spent_.cost_usd) {
    *spent_.cost_usd += *earlier.cost_usd;
  }
}

Spending Meter::spending() const {
  std::lock_guard lock(mutex_);
  return spent_;
}

std::unique_ptr<Client> metered_client(std::shared_ptr<Client> inner,
                                       std::shared_ptr<Meter> meter) {
  return std::make_unique<MeteredClient>(std::move(inner), std::move(meter));
}

}  // namespace cb::llm
