#pragma once

// One case of a candidate, run again while the simulator watches. Virtual time does not depend on
// being watched, so what is seen is what was measured.

#include <functional>
#include <string>

#include "base/json.h"
#include "harness/evaluator.h"

namespace cb::harness {

struct ObserveRequest {
  const tasks::Card* card = nullptr;
  const Candidate* candidate = nullptr;
  const RunKey* key = nullptr;
  std::string case_id;
  bool profile = true;
  bool timeline = false;
};

struct Observation {
  results::Record record;
  /// {"task", "case", "time_ps", "kernels": [...]}, see sim::LineLedger::to_json(), of all steps,
  /// set-up and teardown of the case together. Lines of the candidate's own files have their text
  /// as "source". null: no kernel time was counted, as when the build failed.
  Json profile;
  Json timeline;  ///< see sim::Timeline; null as above
};

/// Throws Error(kUsage) when the task has no such case or the platform cannot run it, Error as of
/// Evaluator::evaluate.
Observation observe(const Layout& layout, Platform& platform, const ObserveRequest& request,
                    const std::function<void(const std::string&)>& progress);

/// The slowest measured case that passed; where there is none, the case that failed first. Empty
/// when no case was run.
std::string case_to_observe(const results::Record& record);

}  // namespace cb::harness
