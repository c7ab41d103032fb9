#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "metrics/interval.h"
#include "results/record.h"
#include "search/eval/eval_run.h"
#include "search/llm/metered_client.h"

namespace cb::eval {

/// What a run came to. A sample is one conversation; it passed if one of its rounds did, and counts
/// with the fastest of those. Samples with an infrastructure failure are left out.
struct EvalScores {
  size_t tasks = 0;
  size_t samples = 0;
  size_t passed = 0;     ///< samples
  double pass_rate = 0;  ///< mean over tasks of the share of samples that passed
  std::optional<metrics::Interval> interval;      ///< of pass_rate, 95 %, tasks drawn anew
  std::vector<std::pair<int, double>> pass_at_k;  ///< for k = 1, 2, 5, 10, ... up to the samples
  double good_rate = 0;                   ///< as pass_rate, at most 5 % slower than the reference
  std::optional<double> geomean_speedup;  ///< over samples that passed and were measured
  std::optional<double> pass_times_geomean;
  size_t no_answers = 0;  ///< attempts
  llm::Spending spending;
  std::optional<double> cost_per_solved_usd;  ///< cost / tasks with a pass
};
EvalScores eval_scores(const std::vector<results::Record>& records, int samples);
Json to_json(const EvalScores& scores);
std::string score_text(const EvalScores& scores);

/// Of each attempt the last record: an infrastructure failure may have been evaluated again. Sorted
/// by task and attempt.
std::vector<results::Record> last_of_each(std::vector<results::Record> records);

/// What the replies behind the records took.
llm::Spending spending_of(const std::vector<results::Record>& records);

/// The most that a plan can take: all rounds of all samples, every answer at its limit.
struct Estimate {
  size_t requests = 0;
  uint64_t input_tokens = 0;
  uint64_t output_tokens = 0;
  std::optional<double> cost_usd;
};
Estimate estimate(const EvalPlan& plan, const std::string& tasks_folder, const llm::Price* price);

}  // namespace cb::eval
