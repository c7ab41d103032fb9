#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "results/record.h"

namespace cb::harness {

/// One thing that speaks against a candidate, seen by a trusted process.
struct Evidence {
  results::Verdict verdict = results::Verdict::kRuntimeError;
  std::string reason;
  results::Finding finding;
};
Json to_json(const Evidence& evidence);
Evidence evidence_from(const Json& json);

/// Which evidence is the verdict: what outranks the clock first (infra_error, compile_error,
/// forbidden, cheating), then the earliest virtual time; of one moment what names the cause before
/// what is its consequence, then the lowest rank. nullptr for none.
const Evidence* decisive(const std::vector<Evidence>& all);

}  // namespace cb::harness
