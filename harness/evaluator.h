#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/random.h"
#include "harness/build/build.h"
#include "harness/candidate.h"
#include "harness/grade.h"
#include "harness/platform.h"
#include "results/record.h"
#include "tasks/card.h"

namespace cb::harness {

/// One candidate to be evaluated.
struct Request {
  const tasks::Card* card = nullptr;
  const Candidate* candidate = nullptr;
  const RunKey* key = nullptr;
  int attempt = 1;
  /// For the host processes: the mode of a deliberately wrong candidate.
  std::vector<std::string> environment;
  std::vector<std::string> only_cases;  ///< ids; empty: all
  bool with_reference = true;           ///< measure the reference for candidates that pass
  bool all_cases = true;                ///< go on after a case with a wrong answer
  bool count_lines = false;             ///< for Evaluated::profile
  bool record_timeline = false;         ///< for Evaluated::timeline
};

/// The record, and what else is kept of an attempt.
struct Evaluated {
  results::Record record;
  std::string build_log;  ///< untrusted
  std::string run_log;    ///< what rank 0's host printed; untrusted
  Json profile;           ///< of the last job; null: none
  Json timeline;          ///< of the last job; null: none
};

/// Reference times of tasks, measured once per run and kept in the cache folder. The key of the run
/// is part of their identity, because shapes depend on it.
class ReferenceTimes {
 public:
  explicit ReferenceTimes(const Layout& layout) : layout_(layout) {}

  using CaseTimes = std::map<std::string, uint64_t>;
  /// Times of the measured cases; `measure` is called where they are not known. Other threads that
  /// ask for the same task wait. Empty when the reference does not pass.
  CaseTimes get(const tasks::Card& card, const Platform& platform, const RunKey& key,
                const std::function<results::Record(const Candidate&)>& measure);

 private:
  struct Entry {
    std::mutex mutex;
    std::optional<CaseTimes> times;
  };
  std::string cache_path(const tasks::Card& card, const Platform& platform, const RunKey& key,
                         const Candidate& reference) const;

  Layout layout_;
  std::mutex mutex_;
  std::map<std::string, Entry> entries_;
};

/// The reference solution of a task. Throws Error(kUsage) where there is none.
Candidate load_reference(const Layout& layout, const tasks::Card& card);

/// Takes candidates from source text to records, on one lane. For one thread.
class Evaluator {
 public:
  Evaluator(const Layout& layout, Platform& platform, ReferenceTimes& references);

  /// `progress` gets a line for people whenever something new begins. A failure of our own parts is
  /// a record with infra_error. Throws Error(kRefused) when nothing can be jailed.
  Evaluated evaluate(const Request& request,
                     const std::function<void(const std::string&)>& progress);

 private:
  Evaluated evaluate_once(const Request& request,
                          const std::function<void(const std::string&)>& progress);
  Reports run_jobs(const Request& request, const build::BuildResult& built,
                   const std::function<void(const std::string&)>& progress);
  bool reference_passes(const Request& request,
                        const std::function<void(const std::string&)>& progress);
  void add_reference(const Request& request, results::Record& record,
                     const std::function<void(const std::string&)>& progress);

  Layout layout_;
  Platform& platform_;
  ReferenceTimes& references_;
  build::BuildTools tools_;
  std::unique_ptr<Lane> lane_;
};

}  // namespace cb::harness
