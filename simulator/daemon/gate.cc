#include "simulator/daemon/gate.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "simulator/daemon/call.h"
#include "simulator/daemon/job.h"
#include "simulator/daemon/report.h"

namespace cb::sim {
namespace {

/// A call that returned, for the timeline; `what` it waited for, if it did.
void draw_call(Cluster& cluster, const HostThread& thread, const std::string& what) {
  if (cluster.timeline == nullptr) return;
  std::string arguments = what.empty() ? "" : dump_json({{"what", what}});
  cluster.timeline->add(Timeline::Kind::kCall, thread.process->rank, thread.id,
                        to_string(thread.pending.request.op), thread.call_start, thread.clock,
                        arguments);
}

/// Visits living threads in (rank, thread) order. A visit may end threads, but not make any.
template <class Visit>
void for_each_thread(Cluster& cluster, Visit visit) {
  for (auto& process : cluster.processes) {
    if (process == nullptr || !process->is_alive()) continue;
    for (size_t at = 0; at < process->threads.size(); ++at) {
      HostThread& thread = *process->threads[at];
      if (thread.state != ThreadState::kEnded) visit(thread);
    }
  }
}

}  // namespace

/// What could happen next, and who could come before it.
struct Gate::Next {
  Time wake = kNever;              ///< the earliest return from a call
  HostThread* pending = nullptr;   ///< the earliest request
  HostThread* running = nullptr;   ///< the earliest thread in host code
  bool waits_for_process = false;  ///< a rank's process is not there yet: a thread at time 0
  bool has_threads = false;
};

Time Gate::now() const { return std::max(last_action_, cluster_.engine.now()); }

void Gate::settle_conditions() {
  Time time = now();
  for_each_thread(cluster_, [time](HostThread& thread) {
    BlockedCall& call = thread.call;
    if (thread.state != ThreadState::kBlocked || call.wake != kNever || !call.is_ready) return;
    if (call.is_ready()) call.wake = std::max(thread.clock, time) + call.after_ready;
  });
}

Gate::Next Gate::find_next() {
  Next next;
  // Threads come in (rank, thread) order, so the first of equal clocks stays.
  auto keep_earlier = [](HostThread*& earliest, HostThread& thread) {
    if (earliest == nullptr || thread.clock < earliest->clock) earliest = &thread;
  };
  for_each_thread(cluster_, [&](HostThread& thread) {
    next.has_threads = true;
    if (thread.state == ThreadState::kRunning) keep_earlier(next.running, thread);
    if (thread.state == ThreadState::kPending) keep_earlier(next.pending, thread);
    if (thread.state == ThreadState::kBlocked) next.wake = std::min(next.wake, thread.call.wake);
  });
  next.waits_for_process = cluster_.job != nullptr && cluster_.job->waits_for_process();
  return next;
}

Gate::Progress Gate::advance(const std::function<bool()>& poll) {
  Job* job = cluster_.job;
  if (job != nullptr && job->is_halted()) return Progress::kIdle;
  settle_conditions();
  Next next = find_next();
  Time timer = job != nullptr ? job->next_timer() : kNever;
  bool is_frozen = job != nullptr && job->is_frozen();
  if (is_frozen) next = {};
  Time pending_time = next.pending != nullptr ? next.pending->clock : kNever;
  Time time = std::min({next.wake, pending_time, timer});
  bool someone_runs = next.running != nullptr || next.waits_for_process;

  bool hosts_wait = !is_frozen && !someone_runs && next.has_threads && next.wake == kNever &&
                    pending_time == kNever;
  if (hosts_wait && cluster_.engine.next_event() == kNever &&
      (job == nullptr || !job->is_settling())) {
    return Progress::kDeadlock;
  }
  if (time == kNever) {
    if (someone_runs) return Progress::kWaitsForHost;
    if (!hosts_wait) return Progress::kIdle;
    cluster_.engine.run(kNever - 1, poll);
    return Progress::kMade;
  }
  if (next.running != nullptr && next.running->clock < time) return Progress::kWaitsForHost;
  if (next.waits_for_process && time > cluster_.start) return Progress::kWaitsForHost;
  if (cluster_.engine.next_event() <= time) {
    cluster_.engine.run(time, poll);
    return Progress::kMade;
  }
  last_action_ = std::max(last_action_, time);
  if (timer == time) {
    job->on_timer();
  } else if (next.wake == time) {
    wake_all(time);
  } else {
    bool may_be_first = next.running == nullptr || next.running->clock > time ||
                        std::pair(next.pending->process->rank, next.pending->id) <
                            std::pair(next.running->process->rank, next.running->id);
    if (!may_be_first) return Progress::kWaitsForHost;
    handle_pending(*next.pending);
  }
  return Progress::kMade;
}

void Gate::wake_all(Time time) {
  for_each_thread(cluster_, [this, time](HostThread& thread) {
    if (thread.state != ThreadState::kBlocked || thread.call.wake != time) return;
    BlockedCall call = std::move(thread.call);
    thread.call = {};
    thread.clock = time;
    if (call.again) {
      thread.state = ThreadState::kPending;
      thread.handles_again = true;
      return;
    }
    draw_call(cluster_, thread, call.what);
    Answer answer;
    if (call.complete) call.complete(answer);
    if (call.owes_reply) {
      finish_call(cluster_, thread, answer);
    } else {
      thread.state = ThreadState::kRunning;
    }
  });
}

void Gate::handle_pending(HostThread& thread) {
  HostProcess& process = *thread.process;
  // Whatever the host wrote to pinned memory before the request can be seen from here on.
  cluster_.engine.at(thread.clock, [this] { cluster_.engine.host_may_have_written(); });
  ++process.api_calls[thread.pending.request.op];
  // The message moves out, because the handler may change the thread's state.
  Message message = std::move(thread.pending);
  thread.pending.request = message.request;
  if (!thread.handles_again) thread.call_start = thread.clock;
  thread.handles_again = false;
  Call call(cluster_, thread, message);
  handle(call);
  if (call.is_malformed()) {
    process.fault = call.fault();
    cluster_.end_process(process, HostProcess::State::kGone);
    return;
  }
  // A call that is to be handled again needs its message.
  if (thread.state == ThreadState::kBlocked) {
    thread.pending = std::move(message);
  } else {
    draw_call(cluster_, thread, "");
  }
}

}  // namespace cb::sim
