#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "harness/evidence.h"

/// What the controller asks of a pool of ranks, and what the ranks answer. Both sides are trusted
/// and built from one tree, so the JSON carries no version.
namespace cb::harness {

/// All cases of one world size for one candidate.
struct Job {
  std::string task_folder;
  std::string task_hash;  ///< what the folder must hash to
  std::string run_key;    ///< hex
  int world_size = 2;
  std::vector<std::string> cases;  ///< ids, in order; all of this world size
  std::string profile = "h100x8";
  bool timed = true;
  std::vector<std::string> fatbin_sha256;
  /// The candidate may compile and load device code that nobody has seen: its card links nvrtc.
  bool runtime_code = false;
  std::string cuda_folder;  ///< with NVRTC and its headers, which hosts see if `runtime_code`
  /// "NAME=value" for the host processes; for the deliberately wrong candidates.
  std::vector<std::string> environment;
  unsigned first_box_slot = 0;  ///< rank r's host gets this + r, the simulator this + world size
  uint64_t wall_limit_ms = 120'000;
  /// Go on with the next case after one whose answer was wrong.
  bool all_cases = true;
  bool count_lines = false;      ///< cases report where their kernels spent their time
  bool record_timeline = false;  ///< cases report what happened when

  std::string host_program;
  std::string simulator_program;
  std::string library_folder;  ///< with libcudart.so.13 and libcuda.so.1 of the simulator
};
Json to_json(const Job& job);
Job job_from(const Json& json);

/// One step as one rank saw it.
struct StepTime {
  uint64_t start_ps = 0;  ///< when the first rank was let go
  uint64_t end_ps = 0;    ///< when this rank was done and idle
};

struct CaseReport {
  std::string id;
  std::vector<StepTime> steps;
  std::vector<Evidence> evidence;
  bool complete = false;      ///< all steps and the teardown were run
  uint64_t instructions = 0;  ///< executed for this case, all ranks together; rank 0 only
  Json profile;   ///< of the job up to here, see sim::LineLedger; null: not asked for; rank 0 only
  Json timeline;  ///< of the job up to here, see sim::Timeline; null: not asked for; rank 0 only
  double wall_ms = 0;
};

struct RankReport {
  int rank = 0;
  std::vector<CaseReport> cases;  ///< in order; the job ended with the last one
  std::string infra;              ///< what went wrong with our own parts; empty: nothing
  std::string output;             ///< stdout and stderr of the host; untrusted
  std::string assurance;          ///< of its jail
  double wall_launch_ms = 0;
  double wall_simulate_ms = 0;
  double wall_grade_ms = 0;
};
Json to_json(const RankReport& report);
RankReport rank_report_from(const Json& json);

}  // namespace cb::harness
