#include "simulator/daemon/stream_memory.h"

#include <fmt/format.h>

#include <cstring>

#include "simulator/daemon/call.h"
#include "simulator/daemon/copies.h"
#include "simulator/daemon/streams.h"

namespace cb::sim {
namespace {

using Operations = std::vector<StreamMemoryOp>;

/// What an item has done so far.
struct Progress {
  Operations operations;
  size_t next = 0;
  uint64_t watch = 0;  ///< the engine's number; 0: none
};

uint64_t width_of(const StreamMemoryOp& op) { return op.is_64_bit != 0 ? 8 : 4; }

uint64_t load(const StreamMemoryOp& op) {
  uint64_t value = 0;
  std::memcpy(&value, reinterpret_cast<const void*>(op.address), width_of(op));
  return value;
}

/// CUDA driver API, CUstreamWaitValue_flags.
bool is_satisfied(const StreamMemoryOp& op) {
  uint64_t mask = op.is_64_bit != 0 ? ~uint64_t{0} : 0xffffffff;
  uint64_t found = load(op), wanted = op.value & mask;
  switch (static_cast<StreamMemoryOp::Kind>(op.kind)) {
    case StreamMemoryOp::kWaitGreaterOrEqual:
      return op.is_64_bit != 0 ? static_cast<int64_t>(found - wanted) >= 0
                               : static_cast<int32_t>(static_cast<uint32_t>(found - wanted)) >= 0;
    case StreamMemoryOp::kWaitEqual:
      return found == wanted;
    case StreamMemoryOp::kWaitAnd:
      return (found & wanted) != 0;
    case StreamMemoryOp::kWaitNor:
      return (~(found | wanted) & mask) != 0;
    default:
      return true;
  }
}

const char* sign_of(uint32_t kind) {
  switch (static_cast<StreamMemoryOp::Kind>(kind)) {
    case StreamMemoryOp::kWaitGreaterOrEqual:
      return ">=";
    case StreamMemoryOp::kWaitEqual:
      return "==";
    case StreamMemoryOp::kWaitAnd:
      return "to have a bit in common with";
    default:
      return "to lack a bit that is not in";
  }
}

/// From the device's front end to the word: as half of a load's round trip.
Time way_to(const Cluster& cluster, int device, uint64_t address) {
  auto half = [](double round_trip_ns) { return static_cast<Time>(round_trip_ns * 500); };
  int holder = cluster.memory.device_of(address);
  if (holder < 0) return half(cluster.profile.pcie_ns);
  return holder == device ? 0 : half(cluster.profile.nvlink_load_ns);
}

void go_on(Cluster& cluster, const std::shared_ptr<Work>& self,
           const std::shared_ptr<Progress>& progress);

void go_on_later(Cluster& cluster, const std::shared_ptr<Work>& self,
                 const std::shared_ptr<Progress>& progress, uint64_t address) {
  Time time = cluster.engine.now() + cluster.costs.stream_memory_op +
              way_to(cluster, self->device, address);
  cluster.engine.at(time, [&cluster, self, progress] { go_on(cluster, self, progress); });
}

void stop_watching(Cluster& cluster, Work& self, Progress& progress) {
  if (progress.watch == 0) return;
  cluster.engine.unwatch(progress.watch);
  progress.watch = 0;
  self.waits_for.clear();
}

void wait(Cluster& cluster, const std::shared_ptr<Work>& self,
          const std::shared_ptr<Progress>& progress) {
  const StreamMemoryOp& op = progress->operations[progress->next];
  self->waits_for =
      fmt::format("waits for {} bytes at {} {} {}; they are {}", width_of(op),
                  cluster.memory.describe(op.address), sign_of(op.kind), op.value, load(op));
  progress->watch = cluster.engine.watch(
      op.address, static_cast<uint32_t>(width_of(op)), [&cluster, self, progress] {
        const StreamMemoryOp& waiting = progress->operations[progress->next];
        if (progress->watch == 0 || self->done) return;
        if (!still_allowed(cluster, *self->owner, self->device, waiting.address, width_of(waiting),
                           false)) {
          return;
        }
        if (!is_satisfied(waiting)) return;
        stop_watching(cluster, *self, *progress);
        ++progress->next;
        go_on_later(cluster, self, progress, waiting.address);
      });
}

/// Does the operations that are next, until one has to wait.
void go_on(Cluster& cluster, const std::shared_ptr<Work>& self,
           const std::shared_ptr<Progress>& progress) {
  if (self->done) return;
  if (progress->next == progress->operations.size()) return finish(cluster, self);
  const StreamMemoryOp& op = progress->operations[progress->next];
  if (op.kind == StreamMemoryOp::kBarrier) {
    ++progress->next;
    return go_on_later(cluster, self, progress, kWindowBase);
  }
  bool is_write = op.kind == StreamMemoryOp::kWrite;
  if (!still_allowed(cluster, *self->owner, self->device, op.address, width_of(op), is_write)) {
    return;
  }
  if (is_write) {
    std::memcpy(reinterpret_cast<void*>(op.address), &op.value, width_of(op));
    cluster.engine.written(op.address, width_of(op));
  } else if (!is_satisfied(op)) {
    return wait(cluster, self, progress);
  }
  ++progress->next;
  go_on_later(cluster, self, progress, op.address);
}

/// Nothing: the call has ended.
std::optional<Operations> read_operations(Call& call) {
  size_t bytes = call.payload.size();
  if (bytes == 0 || bytes % sizeof(StreamMemoryOp) != 0 ||
      bytes / sizeof(StreamMemoryOp) > kMaxStreamMemoryOps) {
    call.malformed("stream memory operations of another size");
    return std::nullopt;
  }
  Operations operations(bytes / sizeof(StreamMemoryOp));
  std::memcpy(operations.data(), call.payload.data(), bytes);
  for (const StreamMemoryOp& op : operations) {
    if (op.kind > StreamMemoryOp::kLastKind) {
      call.malformed("an unknown stream memory operation");
      return std::nullopt;
    }
    if (op.kind == StreamMemoryOp::kBarrier) continue;
    if (op.address % width_of(op) != 0) {
      call.fail(kCudaInvalidValue);
      return std::nullopt;
    }
    bool is_write = op.kind == StreamMemoryOp::kWrite;
    if (!accept_range(call, op.address, width_of(op), is_write)) return std::nullopt;
  }
  return operations;
}

}  // namespace

void stream_memory(Call& call) {
  Cluster& cluster = call.cluster;
  std::optional<int> device = call.device(call.arg(1));
  if (!device) return;
  std::shared_ptr<Stream> stream = call.stream(call.arg(0), *device);
  if (stream == nullptr) return;
  std::optional<Operations> operations = read_operations(call);
  if (!operations || !has_room(call, 0)) return;
  auto progress = std::make_shared<Progress>();
  progress->operations = std::move(*operations);
  auto work = std::make_shared<Work>();
  work->kind = Work::Kind::kStreamMemory;
  work->device = *device;
  work->stream = stream;
  work->what = "a stream memory operation";
  work->ready = call.thread.clock + cluster.costs.launch;
  work->begin = [&cluster, progress](const std::shared_ptr<Work>& self, Time start) {
    cluster.engine.at(start, [&cluster, self, progress] { go_on(cluster, self, progress); });
  };
  work->on_cancel = [&cluster, progress](const std::shared_ptr<Work>& self) {
    stop_watching(cluster, *self, *progress);
  };
  enqueue(cluster, call.process, work);
  call.done(call.host_cost(cluster.costs.stream_op));
}

}  // namespace cb::sim
