#include "simulator/daemon/host_functions.h"

#include <algorithm>

#include "simulator/daemon/call.h"
#include "simulator/daemon/streams.h"

namespace cb::sim {
namespace {

/// Drops functions that were cancelled while they waited for their turn; callbacks run in any case,
/// and are told the error.
void drop_cancelled(HostProcess& process) {
  auto& functions = process.functions;
  while (!functions.empty() && functions.front()->done && !functions.front()->runs_after_error) {
    functions.pop_front();
  }
}

void make_ready(Cluster& cluster, HostProcess& process, const std::shared_ptr<Work>& work) {
  process.functions.push_back(work);
  cluster.engine.interrupt();
}

}  // namespace

bool is_idle_function_thread(const HostThread& thread) {
  return thread.process->function_thread == &thread && thread.process->running_function == nullptr;
}

void host_function(Call& call) {
  Cluster& cluster = call.cluster;
  std::optional<int> device = call.device(call.arg(1));
  if (!device) return;
  std::shared_ptr<Stream> stream = call.stream(call.arg(0), *device);
  if (stream == nullptr) return;
  if (call.arg(2) == 0) return call.malformed("a host function without a name");
  if (!has_room(call, 0)) return;
  auto work = std::make_shared<Work>();
  work->kind = Work::Kind::kHostFunction;
  work->device = *device;
  work->stream = stream;
  work->what = "a host function";
  work->ready = call.thread.clock + cluster.costs.launch;
  work->token = call.arg(2);
  work->runs_after_error = call.arg(3) != 0;
  work->begin = [&cluster](const std::shared_ptr<Work>& self, Time start) {
    cluster.engine.at(start, [&cluster, self] {
      if (!self->done) make_ready(cluster, *self->owner, self);
    });
  };
  if (work->runs_after_error) {
    work->on_cancel = [&cluster](const std::shared_ptr<Work>& self) {
      auto& functions = self->owner->functions;
      bool has_started = self->owner->running_function == self ||
                         std::find(functions.begin(), functions.end(), self) != functions.end();
      if (!has_started) make_ready(cluster, *self->owner, self);
    };
  }
  enqueue(cluster, call.process, work);
  call.done(call.host_cost(cluster.costs.launch_enqueue));
}

void host_function_next(Call& call) {
  Cluster& cluster = call.cluster;
  HostProcess& process = call.process;
  if (process.function_thread == nullptr) process.function_thread = &call.thread;
  if (process.function_thread != &call.thread) {
    return call.malformed("two threads that run host functions");
  }
  if (std::shared_ptr<Work> ended = std::move(process.running_function)) {
    // At the thread's clock, before which device time has not gone on.
    cluster.engine.at(call.thread.clock, [&cluster, ended] { finish(cluster, ended); });
  }
  process.running_function = nullptr;
  BlockedCall blocked;
  blocked.is_ready = [&process] {
    drop_cancelled(process);
    return !process.functions.empty();
  };
  blocked.after_ready = cluster.costs.host_function;
  blocked.what = "waits for the next host function";
  blocked.complete = [&process](Answer& answer) {
    drop_cancelled(process);
    if (process.functions.empty()) return;
    std::shared_ptr<Work> work = process.functions.front();
    process.functions.pop_front();
    answer.results[0] = work->token;
    answer.results[1] = static_cast<uint64_t>(process.contexts[work->device].error);
    process.running_function = work;
  };
  call.wait(std::move(blocked));
}

}  // namespace cb::sim
