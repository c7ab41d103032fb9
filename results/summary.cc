#include "results/summary.h"

namespace cb::results {
namespace {

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

}  // namespace

metrics::Scores summarize(std::span<const Record> records) {
  std::vector<metrics::Attempt> attempts;
  for (const Record& record : records) {
    if (record.verdict == Verdict::kInfraError || record.verdict == Verdict::kSkipped) continue;
    attempts.push_back({record.verdict == Verdict::kPass, record.speedup()});
  }
  return metrics::scores(attempts);
}

Json to_json(const metrics::Scores& scores) {
  Json json;
  json["attempts"] = scores.attempts;
  json["passed"] = scores.passed;
  json["good"] = scores.good;
  json["measured"] = scores.measured;
  json["pass_rate"] = scores.pass_rate;
  json["pass_good_rate"] = scores.good_rate;
  json["gm_speedup"] = or_null(scores.geomean_speedup);
  json["pass_x_gm"] = or_null(scores.pass_times_geomean);
  return json;
}

}  // namespace cb::results
