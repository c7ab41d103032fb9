#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"

/// The record: what one evaluation of one candidate came to.
namespace cb::results {

/// How an evaluation ended. Closed and disjoint.
enum class Verdict {
  kPass,
  kWrongResult,
  kCompileError,
  kRuntimeError,
  kMemoryError,
  kRace,
  kDeadlock,
  kTimeout,
  kForbidden,
  kCheating,
  kNoAnswer,
  kInfraError,
  kSkipped,
};
/// "wrong_result".
const char* to_string(Verdict verdict);
std::optional<Verdict> verdict_from(std::string_view name);
const std::vector<Verdict>& all_verdicts();

/// The evidence behind a verdict.
struct Finding {
  std::string message;  ///< for people: what happened, with the values
  int rank = -1;        ///< whose fault or buffer; -1: no rank in particular
  std::string case_id;
  int step = -1;
  uint64_t time_ps = 0;  ///< virtual, since the start of the job
  std::string file;      ///< of the candidate's source; empty: unknown
  int line = 0;
  /// More of it, by kind: kernel, block and thread; waiters; expected and actual values.
  Json details = Json::object();
};
Json to_json(const Finding& finding);
Finding finding_from(const Json& json);

/// One case of the task.
struct CaseResult {
  std::string id;
  int world_size = 0;
  bool measured = false;                ///< its time enters the speed-up
  Verdict verdict = Verdict::kSkipped;  ///< kSkipped: an earlier case ended the job
  std::string reason;
  int steps = 0;              ///< that were run
  uint64_t time_ps = 0;       ///< median over the steps
  uint64_t cold_ps = 0;       ///< of the first step
  uint64_t reference_ps = 0;  ///< 0: not measured
  // nccl-tests' columns.
  uint64_t bytes = 0;
  uint64_t count = 0;
  std::string type;
  std::string redop;
  double bus_factor = 1;
  uint64_t instructions = 0;  ///< warp instructions that the simulator executed
  double wall_ms = 0;

  double algbw_gbps() const;
  double busbw_gbps() const;
  /// Reference / own; nothing where either is missing.
  std::optional<double> speedup() const;
};

/// Where a candidate came from that a model wrote. Counts are nothing where the provider gave none.
struct Generation {
  std::string model;  ///< "openai/NAME"; "scripted/NAME" for replayed replies, nobody's answer
  std::string answered_by;  ///< what the provider says answered
  int sample = 0;           ///< of the task, from 0
  int round = 0;            ///< of the sample, from 0; later ones saw what became of the earlier
  std::string prompt_sha256;
  std::string finish;
  std::optional<uint64_t> input_tokens;
  std::optional<uint64_t> cached_tokens;  ///< of the input
  std::optional<uint64_t> output_tokens;
  std::optional<double> cost_usd;  ///< nothing: not known
};

/// One line of records.jsonl. Fields that depend on the machine it ran on are named wall_*; all
/// others are the same whenever key, candidate, task, profile and simulator are.
struct Record {
  static constexpr int kSchema = 2;  ///< 1 had no `generation`

  std::string task;
  std::string task_hash;
  std::string candidate;  ///< as the user named it
  std::string candidate_sha256;
  int attempt = 1;
  std::string platform;  ///< "sim:h100x8"
  std::string profile_hash;
  std::string simulator_hash;
  std::string jail_scope = "rank";
  Verdict verdict = Verdict::kInfraError;
  std::string reason;  ///< "out_of_bounds"; empty where the verdict says it all
  std::optional<Finding> finding;
  std::vector<CaseResult> cases;
  std::optional<Generation> generation;

  double wall_build_ms = 0;
  double wall_launch_ms = 0;
  double wall_simulate_ms = 0;
  double wall_grade_ms = 0;
  double wall_total_ms = 0;
  bool wall_build_cached = false;
  std::string wall_jail_assurance;

  int cases_passed() const;
  /// Geometric mean over the measured cases; nothing unless it passed and all have references.
  std::optional<double> speedup() const;
  /// The measured case that stands for the candidate in tables: the one with the most bytes.
  const CaseResult* headline() const;
};
Json to_json(const Record& record);
/// Error(kConfig) for what is no record of this schema.
Result<Record> record_from(const Json& json);

/// "memory_error: out_of_bounds", or the verdict alone.
std::string outcome_text(Verdict verdict, const std::string& reason);

}  // namespace cb::results
