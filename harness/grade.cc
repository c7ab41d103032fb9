#include "harness/grade.h"

#include <algorithm>

#include "metrics/metrics.h"

namespace cb::harness {
namespace {

using results::CaseResult;
using results::Verdict;

std::vector<const CaseReport*> reports_of(const std::string& case_id, const Reports& reports) {
  std::vector<const CaseReport*> found;
  for (const RankReport& rank : reports) {
    for (const CaseReport& one : rank.cases) {
      if (one.id == case_id) found.push_back(&one);
    }
  }
  return found;
}

// The decisive evidence of one case, pointing into the reports.
const Evidence* decisive_of(const std::vector<const CaseReport*>& ranks) {
  std::vector<Evidence> all;
  std::vector<const Evidence*> origins;
  for (const CaseReport* report : ranks) {
    for (const Evidence& evidence : report->evidence) {
      all.push_back(evidence);
      origins.push_back(&evidence);
    }
  }
  const Evidence* first = decisive(all);
  return first == nullptr ? nullptr : origins[static_cast<size_t>(first - all.data())];
}

std::vector<double> step_times_ps(const std::vector<const CaseReport*>& ranks) {
  std::vector<double> times;
  for (size_t step = 0;; ++step) {
    uint64_t longest = 0;
    for (const CaseReport* report : ranks) {
      if (step >= report->steps.size()) return times;
      const StepTime& time = report->steps[step];
      longest = std::max(longest, time.end_ps - std::min(time.start_ps, time.end_ps));
    }
    times.push_back(static_cast<double>(longest));
  }
}

std::string word_or_empty(const tasks::Case& test_case, const char* name) {
  auto found = test_case.words.find(name);
  return found == test_case.words.end() ? "" : found->second;
}

void add_traffic(const tasks::Card& card, const tasks::Case& test_case, const RunKey& key,
                 CaseResult& result) {
  tasks::StepKey step{&key, card.hash, test_case.id, 0};
  tasks::Traffic traffic = card.family->traffic(test_case, step);
  result.bytes = traffic.bytes;
  result.count = traffic.count;
  result.bus_factor = traffic.bus_factor;
  result.type = word_or_empty(test_case, "dtype");
  // As nccl-tests: operations that do not reduce have none.
  bool reduces = word_or_empty(test_case, "collective").find("reduce") != std::string::npos;
  result.redop = reduces ? word_or_empty(test_case, "op") : "none";
}

bool outranks_the_clock(Verdict verdict) {
  return verdict == Verdict::kForbidden || verdict == Verdict::kCheating;
}

}  // namespace

std::vector<CaseResult> grade_cases(const tasks::Card& card, const RunKey& key,
                                    const Reports& reports) {
  std::vector<CaseResult> results;
  for (const tasks::Case& test_case : card.cases) {
    CaseResult& result = results.emplace_back();
    result.id = test_case.id;
    result.world_size = test_case.world_size;
    result.measured = test_case.measured;
    add_traffic(card, test_case, key, result);
    std::vector<const CaseReport*> ranks = reports_of(test_case.id, reports);
    if (ranks.empty()) continue;
    for (const CaseReport* rank : ranks) {
      result.instructions += rank->instructions;
      result.wall_ms = std::max(result.wall_ms, rank->wall_ms);
    }
    if (const Evidence* evidence = decisive_of(ranks)) {
      result.verdict = evidence->verdict;
      result.reason = evidence->reason;
      continue;
    }
    if (!ranks.front()->complete) continue;
    result.verdict = Verdict::kPass;
    std::vector<double> times = step_times_ps(ranks);
    result.steps = static_cast<int>(times.size());
    if (times.empty()) continue;
    result.cold_ps = static_cast<uint64_t>(times.front());
    result.time_ps = static_cast<uint64_t>(*metrics::median(times));
  }
  return results;
}

const Evidence* verdict_of(const tasks::Card& card, const Reports& reports) {
  const Evidence* first = nullptr;
  for (const tasks::Case& test_case : card.cases) {
    const Evidence* evidence = decisive_of(reports_of(test_case.id, reports));
    if (evidence == nullptr) continue;
    if (outranks_the_clock(evidence->verdict)) return evidence;
    if (first == nullptr) first = evidence;
  }
  // Before the first case.
  if (first == nullptr) first = decisive_of(reports_of("", reports));
  return first;
}

std::string infra_failure(const tasks::Card& card, const Reports& reports) {
  if (verdict_of(card, reports) != nullptr) return "";
  for (const RankReport& report : reports) {
    if (!report.infra.empty()) return report.infra;
  }
  return "";
}

}  // namespace cb::harness
