#include "simulator/daemon/memory_requests.h"

#include "simulator/daemon/call.h"
#include "simulator/daemon/memory_pool_requests.h"
#include "simulator/daemon/modules.h"
#include "simulator/daemon/streams.h"

namespace cb::sim {
namespace {

/// The living allocation with that base, if the process made it itself.
const Allocation* own_allocation(Call& call, uint64_t base, Allocation::Kind kind) {
  const Allocation* found = call.cluster.memory.find(base);
  bool is_own = found != nullptr && found->alive && found->base == base &&
                found->rank == call.process.rank && found->kind == kind;
  return is_own ? found : nullptr;
}

/// Frees it when the device has done all that was enqueued before.
void free_when_idle(Call& call, uint64_t base, Allocation::Kind kind, Time cost) {
  const Allocation* found = own_allocation(call, base, kind);
  if (found == nullptr) return call.fail(kCudaInvalidValue);
  int device = found->device;
  int error = call.process.contexts[device].error;
  if (error != 0) return call.fail(error);
  wait_for(call, pending_on(call.process, device), device, cost, "frees memory");
  auto answer_error = std::move(call.thread.call.complete);
  call.thread.call.complete = [&cluster = call.cluster, rank = call.process.rank, base, kind,
                               answer_error](Answer& answer) {
    // Two threads may free the same memory at the same time.
    if (!cluster.memory.free(rank, base, kind)) answer.status = kCudaInvalidValue;
    if (answer.status == kCudaSuccess) answer_error(answer);
  };
}

/// PointerFlag bits.
uint64_t pointer_flags(Call& call, const Allocation& allocation, uint64_t address) {
  if (allocation.kind == Allocation::Kind::kDevice) return kPointerLegacyIpc;
  if (const MemoryPool* pool = call.cluster.pools.pool_of(allocation.base)) {
    return pool->handle_types;
  }
  uint64_t offset = 0;
  MemoryObjectPtr mapped =
      call.cluster.virtual_memory.mapped_at(call.process.rank, address, offset);
  return mapped == nullptr ? 0 : mapped->handle_types;
}

}  // namespace

void malloc_request(Call& call) {
  std::optional<int> device = call.device(call.arg(1));
  if (!device) return;
  const Allocation* made =
      call.arg(0) == 0 ? nullptr
                       : call.cluster.memory.allocate(
                             {.rank = call.process.rank, .device = *device, .bytes = call.arg(0)});
  Answer answer;
  if (made == nullptr) {
    answer.status = kCudaMemoryAllocation;
  } else {
    answer.results[0] = made->base;
  }
  call.done(call.cluster.costs.malloc, answer);
}

void free_request(Call& call) {
  if (call.cluster.pools.contains(call.arg(0))) return free_pooled_when_idle(call, call.arg(0));
  free_when_idle(call, call.arg(0), Allocation::Kind::kDevice, call.cluster.costs.free);
}

void host_alloc(Call& call) {
  std::optional<int> device = call.device(call.arg(2));
  if (!device) return;
  UniqueFd fd;
  const Allocation* made = call.arg(0) == 0 ? nullptr
                                            : call.cluster.memory.allocate_pinned(
                                                  call.process.rank, *device, call.arg(0), fd);
  Answer answer;
  if (made == nullptr) {
    answer.status = kCudaMemoryAllocation;
    return call.done(call.cluster.costs.host_alloc, answer);
  }
  if (call.arg(3) == 1) call.cluster.memory.set_managed(made->base);
  answer.results[0] = made->base;
  int fds[] = {fd.get()};
  call.done(call.cluster.costs.host_alloc, answer, fds);
}

void host_free(Call& call) {
  free_when_idle(call, call.arg(0), Allocation::Kind::kPinned, call.cluster.costs.free);
}

void pointer_info(Call& call) {
  Cluster& cluster = call.cluster;
  const Allocation* found = cluster.memory.find(call.arg(0));
  Answer answer;
  answer.results[0] = static_cast<uint64_t>(PointerKind::kUnknown);
  bool is_visible =
      found != nullptr && found->alive && found->kind != Allocation::Kind::kReserved &&
      found->kind != Allocation::Kind::kPhysical &&
      (found->rank == call.process.rank || cluster.memory.granted(found->base, call.process.rank));
  if (is_visible) {
    bool is_pinned = found->kind == Allocation::Kind::kPinned;
    answer.results[0] = static_cast<uint64_t>(found->managed ? PointerKind::kManaged
                                              : is_pinned    ? PointerKind::kPinned
                                                             : PointerKind::kDevice);
    answer.results[1] = static_cast<uint64_t>(found->device % cluster.profile.devices_per_node);
    answer.results[2] = found->base;
    answer.results[3] = found->bytes;
    answer.results[4] = pointer_flags(call, *found, call.arg(0));
  }
  call.done(cluster.costs.call, answer);
}

void memory_info(Call& call) {
  std::optional<int> device = call.device(call.arg(0));
  if (!device) return;
  Answer answer;
  answer.results[0] = call.cluster.memory.device_bytes_free(*device);
  answer.results[1] = call.cluster.memory.device_bytes_total();
  call.done(call.cluster.costs.call, answer);
}

void peer_access(Call& call) {
  std::optional<int> device = call.device(call.arg(0));
  if (!device) return;
  if (call.arg(1) >= static_cast<uint64_t>(call.cluster.profile.devices_per_node)) {
    return call.fail(kCudaInvalidDevice);
  }
  int peer = call.process.first_device + static_cast<int>(call.arg(1));
  if (peer == *device) return call.fail(kCudaInvalidDevice);
  bool wanted = call.arg(2) != 0;
  AddressSpace& memory = call.cluster.memory;
  if (memory.peer_access(call.process.rank, *device, peer) == wanted) {
    return call.fail(wanted ? kCudaPeerAccessAlreadyEnabled : kCudaPeerAccessNotEnabled);
  }
  memory.set_peer_access(call.process.rank, *device, peer, wanted);
  call.done(call.cluster.costs.malloc);
}

void device_reset(Call& call) {
  std::optional<int> device = call.device(call.arg(0));
  if (!device) return;
  wait_for(call, pending_on(call.process, *device), *device, call.cluster.costs.malloc,
           "resets a device");
  call.thread.call.complete = [&cluster = call.cluster, &process = call.process,
                               device = *device](Answer&) {
    std::erase_if(process.streams,
                  [device](auto& entry) { return entry.second->device == device; });
    std::erase_if(process.events, [device](auto& entry) { return entry.second->device == device; });
    for (int peer = 0; peer < cluster.profile.num_devices(); ++peer) {
      if (peer == device) continue;
      cluster.memory.set_peer_access(process.rank, device, peer, false);
      cluster.memory.set_peer_access(process.rank, peer, device, false);
    }
    forget_instances(process, device);
    cluster.virtual_memory.release_rank(process.rank, device);
    cluster.pools.release_rank(process.rank, device);
    cluster.memory.free_all(process.rank, device);
  };
}

}  // namespace cb::sim
