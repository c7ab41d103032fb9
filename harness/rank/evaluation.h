#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/random.h"
#include "harness/job.h"
#include "harness/rank/case_pool.h"
#include "harness/rank/host_process.h"
#include "harness/rank/rank_group.h"
#include "harness/rank/sim_daemon.h"
#include "simulator/client/rank_client.h"
#include "simulator/protocol/protocol.h"
#include "tasks/card.h"

namespace cb::harness {

/// Time spent since the last look, for the record's wall_* fields.
class Stopwatch {
 public:
  double lap_ms();

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// One job on one rank. All ranks of the group run theirs together; whatever happens to one of
/// them, all go through the same sequence of agreements, and all end.
class Evaluation {
 public:
  /// `socket_path` is a free path in a private folder, the same on every rank; `progress` is called
  /// with the id of every case.
  Evaluation(const Job& job, const std::string& library, const RankGroup& group,
             std::string socket_path, std::function<void(const std::string&)> progress);

  RankReport run();

 private:
  /// What a rank has to say in an agreement.
  enum Bits : unsigned {
    kFine = 0,
    kWrong = 1,  ///< the answer was wrong; the job lives
    kEnded = 2,  ///< the job cannot go on
    kInfra = 4,  ///< our own parts failed
  };

  template <typename Act>
  unsigned together(Act act);
  unsigned run_job();
  void launch();
  void load_task();
  unsigned run_case(const tasks::Case& test_case);
  unsigned run_steps(const tasks::Case& test_case, const CasePool& pool);
  unsigned start_phase(const sim::RankClient::PhasePlan& plan);
  void send_args(const tasks::Case& test_case, const CasePool& pool);
  void send_calls(const Step& step, const CasePool& pool);
  host::Message message_for(const tasks::Case& test_case) const;

  unsigned await_phase();
  unsigned judge_event(const sim::HostEvent& event);
  unsigned judge_gone(const sim::HostEvent& event);
  unsigned judge_status(const sim::HostEvent& event);
  unsigned judge_report(const sim::HostEvent& event);
  unsigned judge_step(Step& step);
  void count_instructions();
  void keep_observations(const Json& report);
  void observe_end();
  std::optional<sim::HostEvent> next_event(int timeout_ms);
  void add(Evidence evidence, uint64_t time_ps);
  int left_ms() const;

  const Job& job_;
  const std::string& library_;
  const RankGroup& group_;
  std::string socket_path_;
  std::function<void(const std::string&)> progress_;
  RunKey key_;
  std::chrono::steady_clock::time_point deadline_;

  std::optional<tasks::Card> card_;
  std::unique_ptr<SimDaemon> daemon_;
  std::optional<sim::RankClient> client_;
  std::optional<HostProcess> host_;

  tasks::StepKey step_key_;
  const tasks::Case* case_ = nullptr;
  bool settling_ = false;  ///< between the end of a step and what comes next
  sim::Phase phase_ = sim::Phase::kNone;
  uint64_t instructions_before_ = 0;
  int devices_per_node_ = 1;
  int num_nodes_ = 1;
  Stopwatch watch_;
  RankReport report_;
};

}  // namespace cb::harness
