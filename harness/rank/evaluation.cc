#include "harness/rank/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/text.h"
#include "simulator/timing/profile.h"

namespace cb::harness {
namespace {

using sim::Phase;

// Of one case; the simulator frees it with the job.
constexpr uint64_t kSymmetricBytesMax = uint64_t{256} << 20;
// Long enough that a copy or kernel which was not joined shows.
constexpr uint64_t kSettlePs = 100'000'000;
constexpr int kConnectMs = 10'000;
// The simulator ends an overdue job itself, and knows better who is late.
constexpr int kOverdueMs = 2'000;

}  // namespace

double Stopwatch::lap_ms() {
  auto now = std::chrono::steady_clock::now();
  return std::chrono::duration<double, std::milli>(now - std::exchange(last_, now)).count();
}

Evaluation::Evaluation(const Job& job, const std::string& library, const RankGroup& group,
                       std::string socket_path, std::function<void(const std::string&)> progress)
    : job_(job),
      library_(library),
      group_(group),
      socket_path_(std::move(socket_path)),
      progress_(std::move(progress)),
      key_(RunKey::from_hex(job.run_key)),
      deadline_(std::chrono::steady_clock::now() +
                std::chrono::milliseconds(job.wall_limit_ms + kOverdueMs)) {
  report_.rank = group.rank();
}

// Does this rank's part, then agrees with the others on how it went. The one place where our own
// failures become part of a report: a rank that fails lets go of the simulator, so that no other
// rank waits there for it.
template <typename Act>
unsigned Evaluation::together(Act act) {
  unsigned bits = kFine;
  try {
    bits = act();
  } catch (const Error& error) {
    bits = kInfra;
    // A request that comes after the end of the job is refused; the end is what counts.
    try {
      std::optional<sim::HostEvent> event = client_ ? client_->wait(0) : std::nullopt;
      if (event) bits = judge_event(*event);
    } catch (const Error&) {
      bits = kInfra;
    }
    if (bits == kFine) bits = kInfra;
    if ((bits & kInfra) != 0) {
      report_.infra = error.message();
      if (daemon_) report_.infra += "; " + daemon_->obituary();
      client_.reset();
    }
  }
  return group_.any(bits);
}

int Evaluation::left_ms() const {
  auto left = deadline_ - std::chrono::steady_clock::now();
  return static_cast<int>(
      std::max<int64_t>(0, std::chrono::duration_cast<std::chrono::milliseconds>(left).count()));
}

void Evaluation::load_task() {
  card_ = value_or_throw(tasks::load_card(job_.task_folder));
  if (card_->hash != job_.task_hash) {
    throw Error(ErrorCode::kConfig, job_.task_folder + " has changed since the run began");
  }
  step_key_.key = &key_;
  step_key_.task_hash = card_->hash;
  sim::Profile profile = value_or_throw(sim::load_profile(job_.profile));
  devices_per_node_ = profile.devices_per_node;
  num_nodes_ = (job_.world_size + devices_per_node_ - 1) / devices_per_node_;
}

void Evaluation::launch() {
  load_task();
  step_key_.step = tasks::StepKey::kWholeCase;
  if (group_.rank() == 0) {
    daemon_ =
        std::make_unique<SimDaemon>(job_, socket_path_, step_key_.seed("device memory"),
                                    card_->scratch ? kSymmetricBytesMax * job_.cases.size() : 0);
  }
  client_.emplace(socket_path_, group_.rank(), kConnectMs);
  host_.emplace(job_, group_.rank(), library_, client_->host_connection());
}

RankReport Evaluation::run() {
  unsigned bits = together([&] {
    launch();
    return kFine;
  });
  report_.wall_launch_ms = watch_.lap_ms();
  if (bits == kFine) run_job();
  if (host_) {
    report_.output = host_->output();
    host_->kill();
    if (const auto& outcome = host_->ended(0)) report_.assurance = outcome->assurance;
  }
  report_.wall_grade_ms += watch_.lap_ms();
  return std::move(report_);
}

unsigned Evaluation::run_job() {
  unsigned bits = kFine;
  for (const std::string& id : job_.cases) {
    auto found = std::find_if(card_->cases.begin(), card_->cases.end(),
                              [&](const tasks::Case& one) { return one.id == id; });
    CB_CHECK(found != card_->cases.end() && found->world_size == job_.world_size,
             "a job names cases of its task and world size");
    progress_(id);
    case_ = &*found;
    report_.cases.emplace_back().id = id;
    Stopwatch watch;
    bits = run_case(*found);
    report_.cases.back().wall_ms = watch.lap_ms();
    if ((bits & (kEnded | kInfra)) != 0 || (bits != kFine && !job_.all_cases)) {
      observe_end();
      break;
    }
    report_.cases.back().complete = true;
  }
  return bits;
}

unsigned Evaluation::run_case(const tasks::Case& test_case) {
  step_key_.case_id = test_case.id;
  std::optional<CasePool> pool;
  unsigned bits = together([&] {
    pool.emplace(*client_, *card_, test_case, group_.rank());
    send_args(test_case, *pool);
    phase_ = Phase::kSetup;
    return start_phase({.phase = static_cast<uint32_t>(Phase::kSetup)});
  });
  if (bits == kFine) bits = run_steps(test_case, *pool);
  if ((bits & (kEnded | kInfra)) != 0) return bits;
  unsigned end = together([&] {
    phase_ = Phase::kTeardown;
    unsigned how = start_phase({.phase = static_cast<uint32_t>(Phase::kTeardown)});
    if (how == kFine && group_.rank() == 0) count_instructions();
    if (how == kFine) client_->release_buffers();
    return how;
  });
  return bits | end;
}

void Evaluation::count_instructions() {
  Json report = client_->report();
  uint64_t all = 0;
  for (const Json& rank : report.at("ranks")) all += rank.at("warp_instructions").get<uint64_t>();
  report_.cases.back().instructions = all - std::exchange(instructions_before_, all);
  keep_observations(report);
}

void Evaluation::keep_observations(const Json& report) {
  CaseReport& done = report_.cases.back();
  done.profile = report.value("profile_lines", Json());
  done.timeline = report.value("timeline", Json());
}

// A case that ended early never gets to its count of instructions, and is worth a look.
void Evaluation::observe_end() {
  bool is_asked = job_.count_lines || job_.record_timeline;
  if (!is_asked || group_.rank() != 0 || !client_ || report_.cases.back().complete) return;
  try {
    keep_observations(client_->report());
  } catch (const Error&) {
    // The simulator is gone, which the job's report says.
  }
}

unsigned Evaluation::run_steps(const tasks::Case& test_case, const CasePool& pool) {
  phase_ = Phase::kRun;
  step_key_.step = tasks::StepKey::kWholeCase;
  int steps = tasks::step_count(test_case, step_key_);
  for (int number = 0; number < steps; ++number) {
    step_key_.step = number;
    std::optional<Step> step;
    unsigned bits = together([&] {
      step.emplace(*client_, pool, test_case, step_key_, group_.rank(),
                   card_->family->plan(test_case, step_key_, group_.rank()));
      step->prepare();
      send_calls(*step, pool);
      return start_phase(step->phase_plan(*card_));
    });
    if (bits == kFine) bits = together([&] { return judge_step(*step); });
    if (bits != kFine) return bits;
  }
  return kFine;
}

unsigned Evaluation::start_phase(const sim::RankClient::PhasePlan& plan) {
  report_.wall_grade_ms += watch_.lap_ms();
  client_->go(plan);
  unsigned bits = await_phase();
  report_.wall_simulate_ms += watch_.lap_ms();
  return bits;
}

host::Message Evaluation::message_for(const tasks::Case& test_case) const {
  host::Message message;
  message.rank = group_.rank();
  message.world_size = test_case.world_size;
  message.node = group_.rank() / devices_per_node_;
  message.num_nodes = num_nodes_;
  message.device = group_.rank() % devices_per_node_;
  message.devices_per_node = devices_per_node_;
  message.scratch = card_->scratch ? 1 : 0;
  return message;
}

void Evaluation::send_args(const tasks::Case& test_case, const CasePool& pool) {
  ResolvedBlob args = pool.resolve(card_->family->args(test_case, group_.rank()));
  host_->send(message_for(test_case), args.relocations, args.bytes);
}

void Evaluation::send_calls(const Step& step, const CasePool& pool) {
  host::Message message = message_for(*case_);
  message.calls_left = static_cast<uint32_t>(step.calls().size());
  for (const tasks::Blob& call : step.calls()) {
    --message.calls_left;
    ResolvedBlob resolved = pool.resolve(call);
    host_->send(message, resolved.relocations, resolved.bytes);
  }
}

unsigned Evaluation::judge_step(Step& step) {
  settling_ = true;
  sim::StepTimes times = client_->settle(kSettlePs);
  uint64_t end_ps = std::max(times.returned_ps, times.idle_ps);
  report_.cases.back().steps.push_back({times.start_ps, end_ps});
  size_t before = report_.cases.back().evidence.size();
  if (times.host_bytes > card_->host_bytes_max) {
    Evidence evidence;
    evidence.verdict = results::Verdict::kCheating;
    evidence.reason = "host_staging";
    evidence.finding.message =
        fmt::format("{} bytes were copied between host and device in one step; this task allows {}",
                    times.host_bytes, card_->host_bytes_max);
    add(std::move(evidence), end_ps);
  }
  if (times.late_work) {
    Evidence evidence;
    evidence.reason = "late_work";
    evidence.finding.message = fmt::format(
        "work of this rank was still running {} after cb_run had returned and its "
        "stream was synchronised; join other streams to it with an event",
        format_time_ps(times.idle_ps - std::min(times.idle_ps, times.returned_ps)));
    add(std::move(evidence), times.returned_ps);
  }
  // Work that runs on may touch what it must not touch any more.
  if (std::optional<sim::HostEvent> event = client_->wait(0)) return judge_event(*event);
  settling_ = false;
  for (Evidence& evidence : step.judge(end_ps)) add(std::move(evidence), end_ps);
  return report_.cases.back().evidence.size() == before ? kFine : kWrong;
}

}  // namespace cb::harness
