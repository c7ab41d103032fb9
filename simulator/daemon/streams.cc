#include "simulator/daemon/streams.h"

#include <fmt/format.h>

#include <algorithm>

#include "simulator/daemon/call.h"

namespace cb::sim {
namespace {

constexpr uint32_t kNonBlockingFlag = 1;    ///< cudaStreamNonBlocking
constexpr uint32_t kDisableTimingFlag = 2;  ///< cudaEventDisableTiming

void add_unfinished(WorkList& list, const std::shared_ptr<Work>& work) {
  if (work == nullptr || work->done) return;
  if (std::find(list.begin(), list.end(), work) == list.end()) list.push_back(work);
}

/// Every stream of the process on the device that the legacy default stream orders.
template <class Visit>
void for_each_blocking(HostProcess& process, int device, Visit visit) {
  for (auto& [id, stream] : process.streams) {
    if (stream->device == device && !stream->non_blocking) visit(*stream);
  }
  for (auto& thread : process.threads) {
    auto found = thread->own_streams.find(device);
    if (found != thread->own_streams.end()) visit(*found->second);
  }
}

WorkList predecessors(HostProcess& process, const Stream& stream, const WorkList& also) {
  WorkList list;
  add_unfinished(list, stream.last);
  if (stream.is_null) {
    for_each_blocking(process, stream.device,
                      [&list](Stream& other) { add_unfinished(list, other.last); });
  } else if (!stream.non_blocking) {
    const auto& null = process.contexts[stream.device].null_stream;
    if (null != nullptr) add_unfinished(list, null->last);
  }
  for (const auto& work : also) add_unfinished(list, work);
  return list;
}

void begin(Cluster& cluster, const std::shared_ptr<Work>& work) {
  Time start = std::max(work->ready, cluster.engine.now());
  if (work->primary != nullptr) {
    start = std::max(start, work->primary->let_at + cluster.costs.programmatic_launch);
  } else if (work->is_device_work() && work->stream->last_work_end > 0) {
    start = std::max(start, work->stream->last_work_end + work->gap);
  }
  auto callback = std::move(work->begin);
  work->begin = nullptr;
  work->begun = start;
  callback(work, start);
}

void draw(Cluster& cluster, const Work& work) {
  Time now = cluster.engine.now();
  cluster.timeline->sample_links(work.device, now);
  if (work.what.empty()) return;
  cluster.timeline->add(Timeline::Kind::kStream, work.owner->rank, work.stream->id, work.what,
                        std::min(work.begun, now), now, work.details);
}

void mark_done(HostProcess& process, Work& work, Time end) {
  work.done = true;
  work.end = end;
  process.staged_bytes -= work.staged_bytes;
  process.unfinished.erase(work.number);
  if (work.is_device_work()) {
    work.stream->last_work_end = end;
    process.last_work_end = std::max(process.last_work_end, end);
  }
  // A stream and its last item must not keep each other alive.
  if (work.stream->last.get() == &work) work.stream->last.reset();
  work.stream.reset();
  work.waits_for.clear();
  work.primary.reset();
  work.dependents.clear();
}

void start_successors(Cluster& cluster, Work& work) {
  WorkList successors = std::move(work.successors);
  work.successors.clear();
  for (const auto& successor : successors) {
    if (!successor->done && --successor->unmet == 0) begin(cluster, successor);
  }
}

std::shared_ptr<Work> marker(Call& call, Work::Kind kind, const std::shared_ptr<Stream>& stream,
                             const char* what) {
  auto work = std::make_shared<Work>();
  work->kind = kind;
  work->device = stream->device;
  work->stream = stream;
  work->what = what;
  work->ready = call.thread.clock + call.cluster.costs.launch;
  work->begin = [&cluster = call.cluster](const std::shared_ptr<Work>& self, Time start) {
    cluster.engine.at(start, [&cluster, self] { finish(cluster, self); });
  };
  return work;
}

/// Answers whether `list` is done as of the end of the query, which costs more the longer a thread
/// does nothing but ask.
void query(Call& call, WorkList list, int device) {
  const Costs& costs = call.cluster.costs;
  HostThread& thread = call.thread;
  BlockedCall blocked;
  unsigned doublings = std::min(thread.idle_polls / 8, 20u);
  blocked.wake = thread.clock + std::min(costs.query << doublings, costs.longest_query);
  blocked.what = "asks for the state of a stream or event";
  HostProcess& process = call.process;
  blocked.complete = [list = std::move(list), &thread, &process, device](Answer& answer) {
    int error = process.contexts[device].error;
    bool is_done = all_done(list);
    answer.status = error != 0 ? error : is_done ? kCudaSuccess : kCudaNotReady;
    thread.idle_polls = is_done ? 0 : thread.idle_polls + 1;
  };
  call.wait(std::move(blocked));
}

}  // namespace

std::shared_ptr<Stream> null_stream(HostProcess& process, int device) {
  std::shared_ptr<Stream>& stream = process.contexts[device].null_stream;
  if (stream == nullptr) {
    stream = std::make_shared<Stream>();
    stream->id = kNullStream;
    stream->device = device;
    stream->is_null = true;
  }
  return stream;
}

std::shared_ptr<Stream> thread_stream(HostThread& thread, int device) {
  std::shared_ptr<Stream>& stream = thread.own_streams[device];
  if (stream == nullptr) {
    stream = std::make_shared<Stream>();
    stream->id = kPerThreadStream;
    stream->device = device;
  }
  return stream;
}

void enqueue(Cluster& cluster, HostProcess& process, const std::shared_ptr<Work>& work,
             const WorkList& also) {
  work->owner = &process;
  work->number = process.next_work++;
  process.staged_bytes += work->staged_bytes;
  process.unfinished.emplace(work->number, work);
  WorkList before = predecessors(process, *work->stream, also);
  if (work->may_overlap && before.size() == 1 && before.front() == work->stream->last &&
      before.front()->kind == Work::Kind::kKernel) {
    work->primary = before.front();
    work->primary->dependents.push_back(work);
    work->unmet = work->primary->lets_dependents_start ? 0 : 1;
  } else {
    work->unmet = static_cast<uint32_t>(before.size());
    for (const auto& predecessor : before) predecessor->successors.push_back(work);
  }
  work->stream->last = work;
  if (work->unmet == 0) begin(cluster, work);
}

void finish(Cluster& cluster, const std::shared_ptr<Work>& work) {
  if (work->done) return;
  if (cluster.timeline != nullptr) draw(cluster, *work);
  WorkList dependents = std::move(work->dependents);
  mark_done(*work->owner, *work, cluster.engine.now());
  for (const auto& dependent : dependents) {
    if (!dependent->done && dependent->run != 0) cluster.engine.dependencies_met(dependent->run);
  }
  start_successors(cluster, *work);
  cluster.engine.interrupt();
}

void let_dependents_start(Cluster& cluster, const std::shared_ptr<Work>& work) {
  if (work->done || work->lets_dependents_start) return;
  work->lets_dependents_start = true;
  work->let_at = cluster.engine.now();
  for (const auto& dependent : work->dependents) {
    if (!dependent->done && --dependent->unmet == 0) begin(cluster, dependent);
  }
  cluster.engine.interrupt();
}

void kernel_ended(Cluster& cluster, const std::shared_ptr<Work>& work) {
  if (work->done) return;
  if (work->primary == nullptr || work->primary->done) return finish(cluster, work);
  work->unmet = 1;
  work->begin = [&cluster](const std::shared_ptr<Work>& self, Time) { finish(cluster, self); };
  work->primary->successors.push_back(work);
}

void cancel(Cluster& cluster, HostProcess& process, int device) {
  WorkList cancelled;
  for (auto& [number, work] : process.unfinished) {
    if (device < 0 || work->device == device) cancelled.push_back(work);
  }
  for (const auto& work : cancelled) {
    mark_done(process, *work, cluster.engine.now());
    work->begin = nullptr;
    if (work->on_cancel) work->on_cancel(work);
    work->on_cancel = nullptr;
  }
  for (const auto& work : cancelled) start_successors(cluster, *work);
  cluster.engine.interrupt();
}

bool has_room(Call& call, uint64_t staged) {
  HostProcess& process = call.process;
  auto fits = [&process, staged] {
    return process.unfinished.size() < kProcessQuota.unfinished_work &&
           (staged == 0 || process.staged_bytes + staged <= kProcessQuota.staged_bytes);
  };
  if (fits()) return true;
  call.again(fits, "waits for room in its queue of work");
  return false;
}

WorkList pending_in(HostProcess& process, const Stream& stream) {
  WorkList list;
  add_unfinished(list, stream.last);
  if (stream.is_null) {
    for_each_blocking(process, stream.device,
                      [&list](Stream& other) { add_unfinished(list, other.last); });
  }
  return list;
}

WorkList pending_on(HostProcess& process, int device) {
  WorkList list;
  for (auto& [number, work] : process.unfinished) {
    if (work->device == device) list.push_back(work);
  }
  return list;
}

void wait_for(Call& call, WorkList list, int device, Time cost, const std::string& what) {
  BlockedCall blocked;
  blocked.is_ready = [list = std::move(list)] { return all_done(list); };
  blocked.after_ready = cost;
  blocked.what = what;
  HostProcess& process = call.process;
  blocked.complete = [&process, device](Answer& answer) {
    answer.status = process.contexts[device].error;
  };
  call.wait(std::move(blocked));
}

namespace {

/// A synchronisation that waits for `list`. When it returns, pools give back what they need not
/// keep.
void synchronize(Call& call, WorkList list, int device, const std::string& what) {
  wait_for(call, std::move(list), device, call.cluster.costs.sync, what);
  auto& complete = call.thread.call.complete;
  complete = [&cluster = call.cluster, rank = call.process.rank,
              answer_error = std::move(complete)](Answer& answer) {
    cluster.pools.release_idle(rank);
    answer_error(answer);
  };
}

}  // namespace

void stream_create(Call& call) {
  HostProcess& process = call.process;
  std::optional<int> device = call.device(call.arg(3));
  if (!device) return;
  uint64_t id = call.arg(0);
  if (id <= kPerThreadStream || process.streams.contains(id)) {
    return call.malformed("a stream's id is in use");
  }
  if (process.streams.size() >= kProcessQuota.streams) return call.fail(kCudaMemoryAllocation);
  auto stream = std::make_shared<Stream>();
  stream->id = id;
  stream->device = *device;
  stream->non_blocking = (call.arg(1) & kNonBlockingFlag) != 0;
  stream->priority =
      static_cast<int32_t>(std::clamp<int64_t>(static_cast<int64_t>(call.arg(2)), -1000, 1000));
  process.streams.emplace(id, std::move(stream));
  call.done(call.cluster.costs.call);
}

void stream_destroy(Call& call) {
  // Its work goes on; nothing can be added.
  auto found = call.process.streams.find(call.arg(0));
  if (found == call.process.streams.end()) return call.fail(kCudaInvalidResourceHandle);
  call.process.streams.erase(found);
  call.done(call.cluster.costs.call);
}

void stream_sync(Call& call) {
  std::optional<int> device = call.device(call.arg(1));
  if (!device) return;
  std::shared_ptr<Stream> stream = call.stream(call.arg(0), *device);
  if (stream == nullptr) return;
  synchronize(call, pending_in(call.process, *stream), *device,
              fmt::format("waits for stream {}", stream->id));
}

void stream_query(Call& call) {
  std::optional<int> device = call.device(call.arg(1));
  if (!device) return;
  std::shared_ptr<Stream> stream = call.stream(call.arg(0), *device);
  if (stream == nullptr) return;
  query(call, pending_in(call.process, *stream), *device);
}

void stream_wait(Call& call) {
  std::optional<int> device = call.device(call.arg(1));
  if (!device) return;
  std::shared_ptr<Stream> stream = call.stream(call.arg(0), *device);
  if (stream == nullptr) return;
  std::shared_ptr<Event> event = call.event(call.arg(2));
  if (event == nullptr || !has_room(call, 0)) return;
  WorkList also;
  if (event->record != nullptr) also.push_back(event->record);
  auto work = marker(call, Work::Kind::kWait, stream, "a wait for an event");
  work->ready = call.thread.clock;
  enqueue(call.cluster, call.process, work, also);
  call.done(call.host_cost(call.cluster.costs.stream_op));
}

void device_sync(Call& call) {
  std::optional<int> device = call.device(call.arg(0));
  if (!device) return;
  synchronize(call, pending_on(call.process, *device), *device,
              fmt::format("waits for device {}", call.arg(0)));
}

void event_create(Call& call) {
  HostProcess& process = call.process;
  std::optional<int> device = call.device(call.arg(2));
  if (!device) return;
  if (process.events.contains(call.arg(0))) return call.malformed("an event's id is in use");
  if (process.events.size() >= kProcessQuota.events) return call.fail(kCudaMemoryAllocation);
  auto event = std::make_shared<Event>();
  event->device = *device;
  event->flags = static_cast<uint32_t>(call.arg(1));
  event->rank = process.rank;
  process.events.emplace(call.arg(0), std::move(event));
  call.done(call.cluster.costs.call);
}

void event_destroy(Call& call) {
  if (call.process.events.erase(call.arg(0)) == 0) return call.fail(kCudaInvalidResourceHandle);
  call.done(call.cluster.costs.call);
}

void event_record(Call& call) {
  std::optional<int> device = call.device(call.arg(2));
  if (!device) return;
  std::shared_ptr<Stream> stream = call.stream(call.arg(1), *device);
  if (stream == nullptr) return;
  std::shared_ptr<Event> event = call.event(call.arg(0));
  if (event == nullptr) return;
  if (event->device != *device && event->rank == call.process.rank) {
    return call.fail(kCudaInvalidResourceHandle);
  }
  if (!has_room(call, 0)) return;
  auto work = marker(call, Work::Kind::kRecord, stream, "the record of an event");
  event->record = work;
  enqueue(call.cluster, call.process, work);
  call.done(call.host_cost(call.cluster.costs.event));
}

void event_sync(Call& call) {
  std::shared_ptr<Event> event = call.event(call.arg(0));
  if (event == nullptr) return;
  WorkList list;
  if (event->record != nullptr) list.push_back(event->record);
  synchronize(call, std::move(list), event->device, "waits for an event");
}

void event_query(Call& call) {
  std::shared_ptr<Event> event = call.event(call.arg(0));
  if (event == nullptr) return;
  WorkList list;
  if (event->record != nullptr) list.push_back(event->record);
  query(call, std::move(list), event->device);
}

void event_elapsed(Call& call) {
  std::shared_ptr<Event> start = call.event(call.arg(0));
  if (start == nullptr) return;
  std::shared_ptr<Event> end = call.event(call.arg(1));
  if (end == nullptr) return;
  if (start->record == nullptr || end->record == nullptr ||
      ((start->flags | end->flags) & kDisableTimingFlag) != 0) {
    return call.fail(kCudaInvalidResourceHandle);
  }
  // The answer is that of the call's end: until then the device may go on.
  BlockedCall blocked;
  blocked.wake = call.thread.clock + call.cluster.costs.query;
  blocked.what = "asks for the time between events";
  blocked.complete = [from = start->record, to = end->record](Answer& answer) {
    if (!from->done || !to->done) {
      answer.status = kCudaNotReady;
      return;
    }
    answer.results[0] = to->end - from->end;
  };
  call.wait(std::move(blocked));
}

}  // namespace cb::sim
