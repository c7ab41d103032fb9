#include "simulator/daemon/job.h"

#include <algorithm>
#include <cstring>

#include "simulator/daemon/call.h"

namespace cb::sim {
namespace {

const char* phase_name(Phase phase) {
  switch (phase) {
    case Phase::kSetup:
      return "setup";
    case Phase::kRun:
      return "step";
    case Phase::kTeardown:
      return "teardown";
    case Phase::kNone:
    case Phase::kExit:
      break;
  }
  return "none";
}

/// Phases start at whole microseconds.
constexpr Time kStartUnit = 1'000'000;

std::byte* pointer(uint64_t address) { return reinterpret_cast<std::byte*>(address); }

void fill(Cluster& cluster, const WireFill& one) {
  fill_words(pointer(one.range.address), one.range.bytes, one.seed, one.skip_bytes);
  cluster.engine.written(one.range.address, one.range.bytes);
}

}  // namespace

Job::Job(Cluster& cluster)
    : cluster_(cluster), ranks_(static_cast<size_t>(cluster.options.world_size)) {}

bool Job::waits_for_process() const {
  return std::any_of(cluster_.processes.begin(), cluster_.processes.end(),
                     [](const auto& process) { return process == nullptr; });
}

bool Job::is_frozen() const {
  if (settle_end_ != kNever) return false;
  return std::all_of(ranks_.begin(), ranks_.end(), [](const RankState& rank) {
    return rank.waiting != nullptr && rank.waiting->call.wake == kNever;
  });
}

bool Job::forbids_bootstrap(int rank) const {
  return ranks_[static_cast<size_t>(rank)].phase == Phase::kRun;
}

void Job::control_wait(Call& call) {
  RankState& rank = state(call.process.rank);
  auto finished = static_cast<Phase>(call.arg(0));
  if (cluster_.timeline != nullptr) {
    cluster_.timeline->phase_ended(call.process.rank, call.thread.clock);
  }
  if (call.arg(0) != static_cast<uint64_t>(rank.phase) || rank.waiting != nullptr) {
    return call.malformed("a phase ends that did not run");
  }
  BlockedCall blocked;
  blocked.what = "waits for the grader";
  call.wait(std::move(blocked));
  rank.waiting = &call.thread;
  if (finished == Phase::kRun) finish_run(rank, call.thread);
  if (finished != Phase::kNone) {
    HostEvent event;
    event.kind = HostEvent::Kind::kPhaseDone;
    event.status = static_cast<int32_t>(call.arg(1));
    size_t text = std::min(call.payload.size(), kRankPayloadBytes);
    event.error.assign(reinterpret_cast<const char*>(call.payload.data()), text);
    event.time_ps = call.thread.clock;
    on_event(call.process.rank, event);
  }
  maybe_start();
  maybe_settle();
}

void Job::finish_run(RankState& rank, const HostThread& thread) {
  const HostProcess& process = *thread.process;
  rank.step.returned_ps = thread.clock;
  rank.step.late_work = process.unfinished.empty() ? 0 : 1;
  rank.step.host_bytes = process.host_bytes - rank.host_bytes_before;
  rank.step.idle_ps = process.last_work_end;
  rank.snapshots.clear();
  for (const WireRange& range : rank.current.snapshot) {
    const std::byte* from = pointer(range.address);
    rank.snapshots.emplace_back(from, from + range.bytes);
  }
  for (const WireFill& one : rank.current.overwrite) fill(cluster_, one);
  if (--num_running_steps_ > 0) return;
  limit_end_ = kNever;
  set_open(false);
}

void Job::go(int rank, PhasePlan plan) {
  state(rank).plan = std::move(plan);
  bool all = std::all_of(ranks_.begin(), ranks_.end(),
                         [](const RankState& one) { return one.plan.has_value(); });
  if (all || end_) on_collective(RankOp::kGo);
  maybe_start();
}

void Job::publish(int rank, PublishedBytes bytes) {
  state(rank).publishing.push_back(std::move(bytes));
}

void Job::maybe_start() {
  bool ready = !end_ && std::all_of(ranks_.begin(), ranks_.end(), [](const RankState& rank) {
    return rank.plan.has_value() && rank.waiting != nullptr;
  });
  if (!ready) return;
  // Settling passes time without any event in which the engine or a host takes part.
  Time latest = std::max(cluster_.engine.now(), settled_until_);
  for (const auto& process : cluster_.processes) latest = std::max(latest, process->clock());
  Time base = (latest + kStartUnit) / kStartUnit * kStartUnit;
  Time first = kNever, limit = 0;
  bool is_run = false;
  for (const RankState& rank : ranks_) {
    first = std::min(first, base + rank.plan->skew);
    limit = std::max(limit, rank.plan->limit);
    is_run = is_run || rank.plan->phase == Phase::kRun;
  }
  if (is_run) cluster_.engine.at(first, [this] { set_open(true); });
  num_running_steps_ = 0;
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    ranks_[rank].step = {};
    ranks_[rank].step.start_ps = first;
    if (ranks_[rank].plan->phase == Phase::kRun) ++num_running_steps_;
    start_rank(static_cast<int>(rank), base + ranks_[rank].plan->skew);
  }
  limit_end_ = limit > 0 ? first + limit : kNever;
}

void Job::start_rank(int number, Time start) {
  RankState& rank = state(number);
  rank.current = std::move(*rank.plan);
  rank.plan.reset();
  rank.phase = rank.current.phase;
  rank.step.go_ps = start;
  if (cluster_.timeline != nullptr) {
    cluster_.timeline->phase_started(number, phase_name(rank.phase), start);
  }
  cluster_.engine.set_pace(number, rank.current.pace);
  rank.host_bytes_before = rank.waiting->process->host_bytes;
  cluster_.engine.at(start, [this, number] { take_effect(number); });
  BlockedCall& call = rank.waiting->call;
  call.wake = start;
  call.complete = [phase = rank.phase](Answer& answer) {
    answer.results[0] = static_cast<uint64_t>(phase);
  };
  rank.waiting = nullptr;
}

void Job::take_effect(int number) {
  RankState& rank = state(number);
  for (const PublishedBytes& one : rank.publishing) {
    std::memcpy(pointer(one.address), one.bytes.data(), one.bytes.size());
    cluster_.engine.written(one.address, one.bytes.size());
  }
  rank.publishing.clear();
  for (const WireFill& one : rank.current.publish_fills) fill(cluster_, one);
}

void Job::settle(int rank, Time delay) {
  state(rank).settle_delay = delay;
  if (end_) return on_collective(RankOp::kSettle);
  maybe_settle();
}

void Job::maybe_settle() {
  bool ready = !end_ && std::all_of(ranks_.begin(), ranks_.end(), [](const RankState& rank) {
    return rank.settle_delay.has_value() && rank.waiting != nullptr;
  });
  if (!ready) return;
  Time latest = cluster_.engine.now(), delay = 0;
  for (const auto& process : cluster_.processes) latest = std::max(latest, process->clock());
  for (RankState& rank : ranks_) {
    delay = std::max(delay, *rank.settle_delay);
    rank.settle_delay.reset();
  }
  settle_end_ = latest + delay;
}

void Job::on_timer() {
  if (limit_end_ < settle_end_) {
    Time time = limit_end_;
    limit_end_ = kNever;
    return end_job({HostEvent::Kind::kTimeLimit, -1, time});
  }
  Time time = settle_end_;
  settled_until_ = time;
  settle_end_ = kNever;
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    const HostProcess& process = *cluster_.processes[rank];
    bool still_runs = !process.unfinished.empty();
    ranks_[rank].step.idle_ps = still_runs ? time : process.last_work_end;
  }
  on_collective(RankOp::kSettle);
}

WireStep Job::step(int rank) const { return ranks_[static_cast<size_t>(rank)].step; }

std::string Job::early_access(int rank) const {
  for (const Finding& finding : cluster_.all_findings()) {
    if (finding.kind == Finding::Kind::kEarlyAccess && finding.place.rank == rank) {
      return finding.detail;
    }
  }
  return {};
}

const std::vector<std::vector<std::byte>>& Job::snapshots(int rank) const {
  return ranks_[static_cast<size_t>(rank)].snapshots;
}

void Job::set_open(bool open) {
  for (const RankState& rank : ranks_) {
    for (const Buffer& buffer : rank.buffers) cluster_.memory.set_open(buffer.base, open);
  }
}

void Job::process_ended(const HostProcess& process) {
  RankState& rank = state(process.rank);
  rank.waiting = nullptr;
  bool is_expected =
      rank.phase == Phase::kExit && process.state == HostProcess::State::kSaidGoodbye;
  if (!is_expected) {
    return end_job(
        {HostEvent::Kind::kGone, process.rank, std::max(process.clock(), cluster_.engine.now())});
  }
  HostEvent event;
  event.kind = HostEvent::Kind::kGone;
  event.time_ps = process.clock();
  on_event(process.rank, event);
}

void Job::finding(const Finding& finding) {
  end_job({HostEvent::Kind::kFinding, finding.place.rank, finding.time_ps});
}

void Job::end_job(const JobEnd& end) {
  if (end_) return;
  end_ = end;
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    HostEvent event;
    event.kind = end.kind;
    event.time_ps = end.time;
    on_event(static_cast<int>(rank), event);
  }
  settle_end_ = kNever;
  for (RankOp op : {RankOp::kGo, RankOp::kSettle, RankOp::kShare}) on_collective(op);
}

}  // namespace cb::sim
