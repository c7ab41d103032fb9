#pragma once

// Scoring a model: answers are asked for, built and evaluated at the same time, each stage as fast
// as what it is bound by (network, cores, device).

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "harness/evaluator.h"
#include "results/run_directory.h"
#include "search/eval/conversation.h"
#include "search/llm/client.h"
#include "search/llm/prices.h"

namespace cb::eval {

struct EvalPlan {
  std::vector<const tasks::Card*> cards;
  std::string model;     ///< as records call it
  int samples = 1;       ///< independent conversations for each task
  int rounds = 1;        ///< answers of a conversation at most; it ends with the first that passes
  bool improve = false;  ///< go on after a pass, for speed
  uint64_t max_output_tokens = 0;
  std::optional<double> temperature;

  /// attempts/<task>/<n>: numbered through samples and rounds, from 1.
  int attempt_number(int sample, int round) const { return sample * rounds + round + 1; }
  size_t most_requests() const {
    return cards.size() * static_cast<size_t>(samples) * static_cast<size_t>(rounds);
  }
};

struct EvalProgress {
  size_t conversations = 0;  ///< in all
  size_t finished = 0;
  size_t requests = 0;  ///< answered in this invocation
  size_t passed = 0;
  size_t concurrency = 0;
  std::optional<double> cost_usd = 0.0;
};

struct EvalOptions {
  size_t most_requests = 8;  ///< at a time
  int lanes = 1;             ///< evaluations at a time
  std::optional<llm::Price> price;
  std::function<void(const EvalProgress&)> on_progress;  ///< called under a lock
};

struct EvalOutcome {
  EvalProgress progress;
  /// Why the run is not complete; it can be resumed.
  std::optional<llm::Failure> stopped_by;
};

/// Runs or goes on with an evaluation: replies and records that the run directory has are not made
/// again. A reply is on the disk before it is evaluated, so that none is paid for twice. Each
/// attempt has a key of its own, derived from `key`. Throws Error(kRefused, kSystem) when the run
/// cannot go on; what was recorded stays.
EvalOutcome evaluate_model(const harness::Layout& layout, harness::Platform& platform,
                           const RunKey& key, const EvalPlan& plan, llm::Client& client,
                           results::RunDirectory& run, const EvalOptions& options);

/// The key of one attempt: HMAC-SHA256(run key, "attempt:" task ":" number).
RunKey attempt_key(const RunKey& key, const std::string& task, int attempt);

}  // namespace cb::eval
