#include "simulator/daemon/memory_pool_requests.h"

#include <algorithm>

#include "simulator/daemon/call.h"
#include "simulator/daemon/memory_pools.h"
#include "simulator/daemon/streams.h"

namespace cb::sim {
namespace {

/// Bits of cudaMemAccessFlags; the values are 0, 1 and 3.
constexpr uint64_t kRead = 1;
constexpr uint64_t kReadWrite = 3;

/// nullptr: the call has failed.
MemoryPool* pool_arg(Call& call, int at) {
  MemoryPool* found = call.cluster.pools.find(call.process.rank, call.arg(at));
  if (found == nullptr) call.fail(kCudaInvalidValue);
  return found;
}

void answer_pool(Call& call, const MemoryPool* pool, Time cost) {
  Answer answer;
  if (pool == nullptr) {
    answer.status = kCudaMemoryAllocation;
  } else {
    answer.results[0] = pool->id;
    answer.results[1] = static_cast<uint64_t>(pool->device % call.cluster.profile.devices_per_node);
    answer.results[2] = pool->handle_types;
  }
  call.done(cost, answer);
}

/// An item that does something when its turn in the stream has come.
std::shared_ptr<Work> turn_in(Call& call, const std::shared_ptr<Stream>& stream, const char* what,
                              std::function<void()> act) {
  auto work = std::make_shared<Work>();
  work->kind = Work::Kind::kMemory;
  work->device = stream->device;
  work->stream = stream;
  work->what = what;
  work->ready = call.thread.clock;
  work->begin = [&cluster = call.cluster, act = std::move(act)](const std::shared_ptr<Work>& self,
                                                                Time start) {
    cluster.engine.at(start, [&cluster, act, self] {
      if (self->done) return;
      act();
      finish(cluster, self);
    });
  };
  return work;
}

uint64_t attribute_of(const MemoryPool& pool, PoolAttribute attribute) {
  switch (attribute) {
    case PoolAttribute::kReleaseThreshold:
      return pool.threshold;
    case PoolAttribute::kReservedCurrent:
      return pool.reserved;
    case PoolAttribute::kReservedHigh:
      return pool.reserved_high;
    case PoolAttribute::kUsedCurrent:
      return pool.used;
    case PoolAttribute::kUsedHigh:
      return pool.used_high;
    default:
      return pool.reuse[static_cast<size_t>(attribute) - 1];
  }
}

bool is_attribute(uint64_t number) {
  return number >= static_cast<uint64_t>(PoolAttribute::kFollowEventDependencies) &&
         number <= static_cast<uint64_t>(PoolAttribute::kUsedHigh);
}

}  // namespace

void pool_create(Call& call) {
  std::optional<int> device = call.device(call.arg(0));
  if (!device) return;
  const MemoryPool* made = call.cluster.pools.create(
      call.process.rank, *device, static_cast<uint32_t>(call.arg(1)), call.arg(2));
  answer_pool(call, made, call.cluster.costs.malloc);
}

void pool_default(Call& call) {
  std::optional<int> device = call.device(call.arg(0));
  if (!device) return;
  answer_pool(call, call.cluster.pools.default_pool(call.process.rank, *device),
              call.cluster.costs.call);
}

void pool_destroy(Call& call) {
  MemoryPool* pool = pool_arg(call, 0);
  if (pool == nullptr) return;
  if (pool->is_default) return call.fail(kCudaInvalidValue);
  call.cluster.pools.destroy(*pool);
  call.done(call.cluster.costs.free);
}

void pool_trim(Call& call) {
  MemoryPool* pool = pool_arg(call, 0);
  if (pool == nullptr) return;
  call.cluster.pools.trim(*pool, call.arg(1));
  call.done(call.cluster.costs.free);
}

void pool_get(Call& call) {
  const MemoryPool* pool = pool_arg(call, 0);
  if (pool == nullptr) return;
  if (!is_attribute(call.arg(1))) return call.fail(kCudaInvalidValue);
  Answer answer;
  answer.results[0] = attribute_of(*pool, static_cast<PoolAttribute>(call.arg(1)));
  call.done(call.cluster.costs.call, answer);
}

void pool_set(Call& call) {
  MemoryPool* pool = pool_arg(call, 0);
  if (pool == nullptr) return;
  uint64_t value = call.arg(2);
  switch (static_cast<PoolAttribute>(call.arg(1))) {
    case PoolAttribute::kFollowEventDependencies:
    case PoolAttribute::kAllowOpportunistic:
    case PoolAttribute::kAllowInternalDependencies:
      pool->reuse[call.arg(1) - 1] = value != 0 ? 1 : 0;
      break;
    case PoolAttribute::kReleaseThreshold:
      pool->threshold = value;
      break;
    case PoolAttribute::kReservedHigh:
      if (value != 0) return call.fail(kCudaInvalidValue);
      pool->reserved_high = pool->reserved;
      break;
    case PoolAttribute::kUsedHigh:
      if (value != 0) return call.fail(kCudaInvalidValue);
      pool->used_high = pool->used;
      break;
    default:
      return call.fail(kCudaInvalidValue);
  }
  call.done(call.cluster.costs.call);
}

void pool_get_access(Call& call) {
  const MemoryPool* pool = pool_arg(call, 0);
  if (pool == nullptr) return;
  std::optional<int> device = call.device(call.arg(1));
  if (!device) return;
  Answer answer;
  bool read = (pool->readers >> *device & 1) != 0;
  bool write = (pool->writers >> *device & 1) != 0;
  answer.results[0] = write ? kReadWrite : read ? kRead : 0;
  call.done(call.cluster.costs.call, answer);
}

void pool_set_access(Call& call) {
  MemoryPool* pool = pool_arg(call, 0);
  if (pool == nullptr) return;
  std::optional<int> device = call.device(call.arg(1));
  if (!device) return;
  uint64_t flags = call.arg(2);
  bool known = flags == 0 || flags == kRead || flags == kReadWrite;
  // The device that holds the memory always reaches it.
  if (!known || (*device == pool->device && flags != kReadWrite)) {
    return call.fail(kCudaInvalidValue);
  }
  call.cluster.pools.set_access(*pool, *device, (flags & kRead) != 0, flags == kReadWrite);
  call.done(call.cluster.costs.malloc);
}

void pool_export(Call& call) {
  const MemoryPool* pool = pool_arg(call, 0);
  if (pool == nullptr) return;
  if ((pool->handle_types & kPosixDescriptor) == 0 || pool->origin != 0) {
    return call.fail(kCudaInvalidValue);
  }
  VirtualMemory& exports = call.cluster.virtual_memory;
  MemoryObjectPtr stands_for = exports.pool_object(call.process.rank, pool->id);
  if (stands_for == nullptr) {
    stands_for = std::make_shared<MemoryObject>(call.cluster.memory);
    stands_for->node = call.process.node;
    stands_for->device = pool->device;
    stands_for->pool = pool->id;
  }
  UniqueFd token = exports.export_object(call.process.rank, stands_for);
  if (!token) return call.fail(kCudaMemoryAllocation);
  int fds[] = {token.get()};
  call.done(call.cluster.costs.ipc_open, {}, fds);
}

void pool_import(Call& call) {
  MemoryObjectPtr found = call.fd < 0 ? nullptr : call.cluster.virtual_memory.object_of(call.fd);
  if (found == nullptr || found->pool == 0 || found->node != call.process.node) {
    return call.fail(kCudaInvalidValue);
  }
  const MemoryPool* exported = call.cluster.pools.find_any(found->pool);
  if (exported == nullptr || exported->destroyed) return call.fail(kCudaInvalidValue);
  answer_pool(call, call.cluster.pools.import(call.process.rank, *exported),
              call.cluster.costs.ipc_open);
}

void pool_export_pointer(Call& call) {
  const Allocation* found = call.cluster.memory.find(call.arg(0));
  const MemoryPool* pool = found == nullptr ? nullptr : call.cluster.pools.pool_of(found->base);
  bool valid = pool != nullptr && found->alive && found->base == call.arg(0) &&
               pool->rank == call.process.rank && (pool->handle_types & kPosixDescriptor) != 0;
  if (!valid) return call.fail(kCudaInvalidValue);
  IpcTokens::Token token = call.cluster.ipc.of_memory(call.process.rank, found->base);
  Answer answer;
  answer.results[0] = token[0];
  answer.results[1] = token[1];
  call.done(call.cluster.costs.call, answer);
}

void pool_import_pointer(Call& call) {
  const MemoryPool* pool = pool_arg(call, 0);
  if (pool == nullptr) return;
  const IpcTokens::Memory* known = call.cluster.ipc.memory({call.arg(1), call.arg(2)});
  if (known == nullptr || pool->origin == 0 ||
      !call.cluster.pools.import_pointer(*pool, known->base)) {
    return call.fail(kCudaInvalidValue);
  }
  const Allocation* found = call.cluster.memory.find(known->base);
  Answer answer;
  answer.results[0] = found->base;
  answer.results[1] = found->bytes;
  call.done(call.cluster.costs.ipc_open, answer);
}

void malloc_async(Call& call) {
  Cluster& cluster = call.cluster;
  std::optional<int> device = call.device(call.arg(2));
  if (!device) return;
  std::shared_ptr<Stream> stream = call.stream(call.arg(1), *device);
  if (stream == nullptr) return;
  MemoryPool* pool = pool_arg(call, 3);
  if (pool == nullptr || !has_room(call, 0)) return;
  // Memory is made in the pool's own process, and for the device that holds it.
  if (pool->origin != 0 || call.arg(0) == 0) return call.fail(kCudaInvalidValue);
  MemoryPools::Made made = cluster.pools.allocate(*pool, *stream, call.arg(0));
  Time cost = made.grew ? cluster.costs.malloc : cluster.costs.stream_op;
  if (made.allocation == nullptr) return call.done(cost, {.status = kCudaMemoryAllocation});
  uint64_t base = made.allocation->base;
  auto work = turn_in(call, stream, "an allocation from a pool",
                      [&cluster, base] { cluster.memory.set_pending(base, false); });
  enqueue(cluster, call.process, work, made.after);
  Answer answer;
  answer.results[0] = base;
  call.done(cost, answer);
}

void free_async(Call& call) {
  Cluster& cluster = call.cluster;
  std::optional<int> device = call.device(call.arg(2));
  if (!device) return;
  std::shared_ptr<Stream> stream = call.stream(call.arg(1), *device);
  if (stream == nullptr || !has_room(call, 0)) return;
  uint64_t base = call.arg(0);
  int rank = call.process.rank;
  auto work = turn_in(call, stream, "a free of memory from a pool",
                      [&cluster, rank, base] { cluster.pools.end_free(rank, base); });
  if (!cluster.pools.begin_free(rank, base, stream.get(), work)) {
    return call.fail(kCudaInvalidValue);
  }
  enqueue(cluster, call.process, work);
  call.done(cluster.costs.stream_op);
}

void free_pooled_when_idle(Call& call, uint64_t base) {
  Cluster& cluster = call.cluster;
  int rank = call.process.rank;
  const Allocation* found = cluster.memory.find(base);
  int device = found->device;
  if (!cluster.pools.begin_free(rank, base, nullptr, nullptr)) return call.fail(kCudaInvalidValue);
  wait_for(call, pending_on(call.process, device), device, cluster.costs.free, "frees memory");
  call.thread.call.complete =
      [&cluster, rank, base, answer_error = std::move(call.thread.call.complete)](Answer& answer) {
        cluster.pools.end_free(rank, base);
        answer_error(answer);
      };
}

}  // namespace cb::sim
