#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/random.h"
#include "harness/evaluator.h"
#include "results/run_directory.h"

namespace cb::harness {

/// One candidate of a score run.
struct ScoreItem {
  const tasks::Card* card = nullptr;
  Candidate candidate;
  int attempt = 1;  ///< numbers the candidates of one task, from 1
};

struct ScoreOptions {
  int lanes = 1;  ///< evaluations at the same time
  std::vector<std::string> environment;
  bool with_reference = true;
  /// Called under a lock: after each record is on disk, and with a line for people.
  std::function<void(const results::Record&)> on_record;
  std::function<void(const std::string&)> on_progress;
};

/// Evaluates all items and keeps each record and its artifacts in the run directory as soon as it
/// is there. Records in the order of the items. Throws Error(kRefused, kSystem) when the run cannot
/// go on; what was recorded stays.
std::vector<results::Record> score(const Layout& layout, Platform& platform, const RunKey& key,
                                   const std::vector<ScoreItem>& items, results::RunDirectory& run,
                                   const ScoreOptions& options);

/// Writes candidate, logs and verdict into attempts/<task>/<n>/.
void keep_attempt(const results::RunDirectory& run, const Candidate& candidate,
                  const Evaluated& evaluated);

}  // namespace cb::harness
