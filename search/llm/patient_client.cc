#include "search/llm/patient_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>

namespace cb::llm {
namespace {

class PatientClient : public Client {
 public:
  PatientClient(std::shared_ptr<Client> inner, PatienceOptions options,
                std::shared_ptr<Clock> clock)
      : inner_(std::move(inner)),
        options_(options),
        clock_(std::move(clock)),
        requests_(options.requests_per_minute, clock_->now()),
        tokens_(options.tokens_per_minute, clock_->now()) {}

  Completion complete(const Request& request) override {
    const double deadline = clock_->now() + options_.deadline_s;
    uint32_t rate_limited = 0;
    for (int attempt = 1;; ++attempt) {
      if (auto open = breaker_state()) return tl::unexpected(*open);
      const double estimate = static_cast<double>(estimated_input_tokens(request));
      wait_for_turn(estimate);
      Completion done = inner_->complete(request);
      settle(done, estimate);
      if (done) done->rate_limited = rate_limited;
      if (done || !is_transient(done.error().kind)) return done;
      rate_limited += done.error().kind == FailureKind::kRateLimit;
      if (attempt >= options_.max_attempts) {
        return gave_up(std::move(done.error()), fmt::format("{} attempts", attempt));
      }
      double pause = pause_before(attempt, done.error());
      if (clock_->now() + pause > deadline) {
        return gave_up(std::move(done.error()), fmt::format("{:.0f} s", options_.deadline_s));
      }
      clock_->sleep(pause);
    }
  }

 private:
  static Completion gave_up(Failure failure, const std::string& after) {
    failure.message += fmt::format(" (given up after {})", after);
    return tl::unexpected(std::move(failure));
  }

  std::optional<Failure> breaker_state() {
    std::lock_guard lock(mutex_);
    if (failures_in_a_row_ < options_.breaker_failures) return std::nullopt;
    Failure failure = last_failure_;
    failure.message += fmt::format(" ({} failures in a row: the provider is taken to be gone)",
                                   failures_in_a_row_);
    return failure;
  }

  void wait_for_turn(double tokens) {
    double pause = 0;
    {
      std::lock_guard lock(mutex_);
      double now = clock_->now();
      pause = std::max(requests_.take(1, now), tokens_.take(tokens, now));
    }
    if (pause > 0) clock_->sleep(pause);
  }

  void settle(const Completion& done, double estimate) {
    std::lock_guard lock(mutex_);
    if (done) {
      failures_in_a_row_ = 0;
      double used =
          static_cast<double>(done->usage.input.value_or(0) + done->usage.output.value_or(0));
      if (used > 0) tokens_.correct(estimate - used);
    } else if (is_transient(done.error().kind)) {
      ++failures_in_a_row_;
      last_failure_ = done.error();
    }
  }

  double pause_before(int attempt, const Failure& failure) {
    if (failure.retry_after_s) return *failure.retry_after_s;
    double longest =
        std::min(options_.longest_backoff_s, options_.first_backoff_s * std::exp2(attempt - 1));
    return longest * clock_->random();
  }

  std::shared_ptr<Client> inner_;
  PatienceOptions options_;
  std::shared_ptr<Clock> clock_;
  std::mutex mutex_;
  TokenBucket requests_;
  TokenBucket tokens_;
  int failures_in_a_row_ = 0;
  Failure last_failure_;
};

}  // namespace

double TokenBucket::take(double amount, double now) {
  if (rate_ <= 0) return 0;
  level_ = std::min(rate_ * 60, level_ + (now - at_) * rate_);
  at_ = now;
  level_ -= amount;
  return level_ >= 0 ? 0 : -level_ / rate_;
}

uint64_t estimated_tokens(uint64_t bytes) { return (bytes + 3) / 4; }

uint64_t estimated_input_tokens(const Request& request) {
  uint64_t bytes = request.system.size();
  for (const Message& message : request.messages) bytes += message.text.size();
  return estimated_tokens(bytes);
}

std::unique_ptr<Client> patient_client(std::shared_ptr<Client> inner, PatienceOptions options,
                                       std::shared_ptr<Clock> clock) {
  return std::make_unique<PatientClient>(std::move(inner), options, std::move(clock));
}

}  // namespace cb::llm
