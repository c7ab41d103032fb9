#include "simulator/daemon/managed_memory.h"

#include "simulator/daemon/call.h"
#include "simulator/daemon/streams.h"

namespace cb::sim {
namespace {

/// Pages move in blocks of this size (CUDA C++ Programming Guide, "Unified Memory": up to 2 MiB).
constexpr uint64_t kBlockBytes = uint64_t{2} << 20;
constexpr uint64_t kToHost = ~uint64_t{0};

Time migration_time(Cluster& cluster, int from, int to, uint64_t bytes, Time start) {
  if (from == to) return start;
  CopyKind kind = from < 0 ? CopyKind::kHostToDevice
                  : to < 0 ? CopyKind::kDeviceToHost
                           : CopyKind::kPeer;
  uint64_t blocks = (bytes + kBlockBytes - 1) / kBlockBytes;
  Time moved =
      cluster.options.timed ? cluster.engine.resources().copy(kind, from, to, start, bytes) : start;
  return moved + blocks * cluster.costs.page_migration;
}

}  // namespace

void managed_prefetch(Call& call) {
  Cluster& cluster = call.cluster;
  std::optional<int> device = call.device(call.arg(3));
  if (!device) return;
  std::shared_ptr<Stream> stream = call.stream(call.arg(2), *device);
  if (stream == nullptr) return;
  int target = -1;
  if (call.arg(4) != kToHost) {
    std::optional<int> wanted = call.device(call.arg(4));
    if (!wanted) return;
    target = *wanted;
  }
  uint64_t address = call.arg(0), bytes = call.arg(1);
  const Allocation* found = cluster.memory.find(address);
  bool valid = found != nullptr && found->alive && found->managed &&
               found->rank == call.process.rank && bytes > 0 && bytes <= found->end() - address;
  if (!valid) return call.fail(kCudaInvalidValue);
  if (!has_room(call, 0)) return;
  auto work = std::make_shared<Work>();
  work->kind = Work::Kind::kCopy;
  work->device = *device;
  work->stream = stream;
  work->what = "a prefetch of managed memory";
  work->ready = call.thread.clock + cluster.costs.copy_start;
  work->gap = cluster.costs.launch_gap;
  uint64_t base = found->base;
  work->begin = [&cluster, base, bytes, target](const std::shared_ptr<Work>& self, Time start) {
    cluster.engine.at(start, [&cluster, base, bytes, target, self, start] {
      if (self->done) return;
      const Allocation* memory = cluster.memory.find(base);
      bool is_there = memory != nullptr && memory->alive && memory->managed;
      int from = !is_there || memory->on_host() ? -1 : memory->device;
      Time over = is_there ? migration_time(cluster, from, target, bytes, start) : start;
      bool moves = is_there && from != target && bytes >= memory->bytes - memory->bytes / 2;
      cluster.engine.at(over, [&cluster, base, target, moves, self] {
        if (self->done) return;
        if (moves) cluster.memory.set_resident(base, target);
        finish(cluster, self);
      });
    });
  };
  enqueue(cluster, call.process, work);
  call.done(cluster.costs.copy_enqueue);
}

}  // namespace cb::sim
