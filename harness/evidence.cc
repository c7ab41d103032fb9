#include "harness/evidence.h"

#include <algorithm>
#include <tuple>

namespace cb::harness {
namespace {

using results::Verdict;

// Lower comes first. Verdicts that share a number are ordered by time.
int precedence(Verdict verdict) {
  switch (verdict) {
    case Verdict::kInfraError:
      return 0;
    case Verdict::kCompileError:
      return 1;
    case Verdict::kForbidden:
      return 2;
    case Verdict::kCheating:
      return 3;
    default:
      return 4;
  }
}

// A bad store explains a wrong result, and a fault explains that the host gave up.
int cause_order(const Evidence& evidence) {
  switch (evidence.verdict) {
    case Verdict::kMemoryError:
      return 0;
    case Verdict::kRace:
      return 1;
    case Verdict::kDeadlock:
      return 2;
    case Verdict::kRuntimeError:
      return evidence.reason == "returned_error" || evidence.reason == "cuda_error" ? 4 : 3;
    case Verdict::kTimeout:
      return 5;
    default:
      return 6;
  }
}

}  // namespace

Json to_json(const Evidence& evidence) {
  Json json;
  json["verdict"] = to_string(evidence.verdict);
  json["reason"] = evidence.reason;
  json["finding"] = to_json(evidence.finding);
  return json;
}

Evidence evidence_from(const Json& json) {
  Evidence evidence;
  evidence.verdict =
      results::verdict_from(json.at("verdict").get<std::string>()).value_or(Verdict::kInfraError);
  json.at("reason").get_to(evidence.reason);
  evidence.finding = results::finding_from(json.at("finding"));
  return evidence;
}

const Evidence* decisive(const std::vector<Evidence>& all) {
  auto key = [](const Evidence& evidence) {
    return std::make_tuple(precedence(evidence.verdict), evidence.finding.time_ps,
                           cause_order(evidence), evidence.finding.rank);
  };
  auto first = std::min_element(
      all.begin(), all.end(),
      [&](const Evidence& left, const Evidence& right) { return key(left) < key(right); });
  return first == all.end() ? nullptr : &*first;
}

}  // namespace cb::harness
