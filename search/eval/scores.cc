#include "search/eval/scores.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "metrics/metrics.h"
#include "metrics/sampling.h"
#include "search/llm/patient_client.h"

namespace cb::eval {
namespace {

using results::Record;
using results::Verdict;

/// Of a conversation, or of several: what counts.
struct SampleResult {
  bool passed = false;
  bool failed_here = false;  ///< an infrastructure failure: it says nothing
  std::optional<double> speedup;
};

struct TaskResult {
  std::vector<SampleResult> samples;
  size_t passed() const {
    return static_cast<size_t>(std::count_if(samples.begin(), samples.end(),
                                             [](const SampleResult& one) { return one.passed; }));
  }
  size_t good() const {
    return static_cast<size_t>(
        std::count_if(samples.begin(), samples.end(), [](const SampleResult& one) {
          return one.speedup && *one.speedup * (1 + metrics::kGoodTolerance) >= 1;
        }));
  }
};

std::map<std::string, TaskResult> by_task(const std::vector<Record>& records) {
  std::map<std::pair<std::string, int>, SampleResult> samples;
  for (const Record& record : records) {
    if (!record.generation) continue;
    SampleResult& sample = samples[{record.task, record.generation->sample}];
    if (record.verdict == Verdict::kInfraError) sample.failed_here = true;
    if (record.verdict != Verdict::kPass) continue;
    sample.passed = true;
    if (auto speedup = record.speedup()) {
      sample.speedup = std::max(sample.speedup.value_or(0), *speedup);
    }
  }
  std::map<std::string, TaskResult> tasks;
  for (const auto& [place, sample] : samples) {
    if (sample.passed || !sample.failed_here) tasks[place.first].samples.push_back(sample);
  }
  return tasks;
}

double share(size_t part, size_t all) {
  return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all);
}

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

std::string percent(double value) { return fmt::format("{:.1f} %", value * 100); }

void add_pass_at_k(EvalScores& scores, const std::vector<TaskResult>& tasks, int samples) {
  for (int k : {1, 2, 5, 10, 20, 50, 100}) {
    if (k > samples) break;
    double sum = 0;
    size_t counted = 0;
    for (const TaskResult& task : tasks) {
      auto value = metrics::pass_at_k(task.samples.size(), task.passed(), static_cast<uint64_t>(k));
      if (!value) continue;
      sum += *value;
      ++counted;
    }
    if (counted > 0) scores.pass_at_k.emplace_back(k, sum / static_cast<double>(counted));
  }
}

}  // namespace

EvalScores eval_scores(const std::vector<Record>& records, int samples) {
  EvalScores scores;
  scores.spending = spending_of(records);
  std::vector<TaskResult> tasks;
  size_t solved = 0;
  std::vector<double> speedups;
  for (auto& [id, task] : by_task(records)) tasks.push_back(std::move(task));
  scores.tasks = tasks.size();
  for (const TaskResult& task : tasks) {
    scores.samples += task.samples.size();
    scores.passed += task.passed();
    solved += task.passed() > 0;
    scores.pass_rate +=
        share(task.passed(), task.samples.size()) / static_cast<double>(tasks.size());
    scores.good_rate += share(task.good(), task.samples.size()) / static_cast<double>(tasks.size());
    for (const SampleResult& sample : task.samples) {
      if (sample.speedup) speedups.push_back(*sample.speedup);
    }
  }
  scores.interval =
      metrics::bootstrap(tasks.size(), [&](std::span<const size_t> drawn) -> std::optional<double> {
        double sum = 0;
        for (size_t task : drawn) sum += share(tasks[task].passed(), tasks[task].samples.size());
        return sum / static_cast<double>(drawn.size());
      });
  add_pass_at_k(scores, tasks, samples);
  scores.geomean_speedup = metrics::geometric_mean(speedups);
  if (scores.geomean_speedup)
    scores.pass_times_geomean = scores.pass_rate * *scores.geomean_speedup;
  for (const Record& record : records) scores.no_answers += record.verdict == Verdict::kNoAnswer;
  if (scores.spending.cost_usd && solved > 0) {
    scores.cost_per_solved_usd = *scores.spending.cost_usd / static_cast<double>(solved);
  }
  return scores;
}

Json to_json(const EvalScores& scores) {
  Json json;
  json["tasks"] = scores.tasks;
  json["samples"] = scores.samples;
  json["passed"] = scores.passed;
  json["pass_rate"] = scores.pass_rate;
  json["pass_rate_95"] =
      scores.interval ? Json::array({scores.interval->low, scores.interval->high}) : Json(nullptr);
  json["pass_at_k"] = Json::object();
  for (const auto& [k, value] : scores.pass_at_k) json["pass_at_k"][std::to_string(k)] = value;
  json["pass_good_rate"] = scores.good_rate;
  json["gm_speedup"] = or_null(scores.geomean_speedup);
  json["pass_x_gm"] = or_null(scores.pass_times_geomean);
  json["no_answers"] = scores.no_answers;
  json["requests"] = scores.spending.requests;
  json["input_tokens"] = scores.spending.input_tokens;
  json["cached_tokens"] = scores.spending.cached_tokens;
  json["cached_ratio"] = or_null(scores.spending.cached_ratio());
  json["output_tokens"] = scores.spending.output_tokens;
  json["cost_usd"] = or_null(scores.spending.cost_usd);
  json["cost_per_solved_usd"] = or_null(scores.cost_per_solved_usd);
  return json;
}

std::string score_text(const EvalScores& scores) {
  std::string text =
      fmt::format("Pass rate   {} ({} of {} samples, {} tasks)", percent(scores.pass_rate),
                  scores.passed, scores.samples, scores.tasks);
  if (scores.interval) {
    text += fmt::format(", 95 % within {} to {}", percent(scores.interval->low),
                        percent(scores.interval->high));
  }
  text += "\n";
  for (const auto& [k, value] : scores.pass_at_k) {
    if (k > 1) text += fmt::format("pass@{:<6} {}\n", k, percent(value));
  }
  auto number = [](const std::optional<double>& value) {
    return value ? fmt::format("{:.2f}", *value) : "-";
  };
  text += fmt::format("PASS+Good   {}\nGM-speedup  {}\nPass×GM     {}\n", percent(scores.good_rate),
                      number(scores.geomean_speedup), number(scores.pass_times_geomean));
  const llm::Spending& spent = scores.spending;
  auto cached = spent.cached_ratio();
  text += fmt::format("Tokens      {} in ({} cached), {} out; {} answers without a candidate\n",
                      spent.input_tokens, cached ? percent(*cached) : "-", spent.output_tokens,
                      scores.no_answers);
  text += fmt::format("Cost        {}\n",
                      spent.cost_usd ? fmt::format("{:.4f} USD", *spent.cost_usd) : "unknown");
  return text;
}

std::vector<Record> last_of_each(std::vector<Record> records) {
  std::map<std::pair<std::string, int>, Record> last;
  for (Record& record : records) last[{record.task, record.attempt}] = std::move(record);
  std::vector<Record> kept;
  for (auto& [place, record] : last) kept.push_back(std::move(record));
  return kept;
}

llm::Spending spending_of(const std::vector<Record>& records) {
  llm::Spending spending;
  for (const Record& record : records) {
    if (!record.generation) continue;
    const results::Generation& made = *record.generation;
    ++spending.requests;
    spending.input_tokens += made.input_tokens.value_or(0);
    spending.cached_tokens += made.cached_tokens.value_or(0);
    spending.output_tokens += made.output_tokens.value_or(0);
    spending.uncounted += !made.input_tokens || !made.output_tokens;
    if (!made.cost_usd) {
      spending.cost_usd = std::nullopt;
    } else if (spending.cost_usd) {
      *spending.cost_usd += *made.cost_usd;
    }
  }
  return spending;
}

Estimate estimate(const EvalPlan& plan, const std::string& tasks_folder, const llm::Price* price) {
  // A round repeats what was said before: the answers, and what was told about them.
  constexpr uint64_t kFeedbackTokens = 2000;
  Estimate made;
  for (const tasks::Card* card : plan.cards) {
    uint64_t first = llm::estimated_input_tokens(ask(*card, tasks_folder, {}));
    for (int round = 0; round < plan.rounds; ++round) {
      auto samples = static_cast<uint64_t>(plan.samples);
      made.requests += samples;
      made.input_tokens += samples * (first + static_cast<uint64_t>(round) *
                                                  (plan.max_output_tokens + kFeedbackTokens));
      made.output_tokens += samples * plan.max_output_tokens;
    }
  }
  made.cost_usd = llm::cost_usd(price, {.input = made.input_tokens, .output = made.output_tokens});
  return made;
}

}  // namespace cb::eval
