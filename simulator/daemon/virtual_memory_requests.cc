#include "simulator/daemon/virtual_memory_requests.h"

#include <bit>

#include "simulator/daemon/call.h"
#include "simulator/daemon/virtual_memory.h"

namespace cb::sim {
namespace {

/// Bits of CUmemAccess_flags; the values are 0, 1 and 3.
constexpr uint64_t kRead = 1;
constexpr uint64_t kReadWrite = 3;

/// nullptr: the call has failed.
MemoryObjectPtr object(Call& call, uint64_t handle) {
  MemoryObjectPtr found = call.cluster.virtual_memory.find(call.process.rank, handle);
  if (found == nullptr) call.fail(kCudaInvalidValue);
  return found;
}

MemoryObjectPtr multicast(Call& call, uint64_t handle) {
  MemoryObjectPtr found = object(call, handle);
  if (found == nullptr || found->is_multicast()) return found;
  call.fail(kCudaInvalidValue);
  return nullptr;
}

void answer_handle(Call& call, const MemoryObjectPtr& object, Time cost) {
  Answer answer;
  answer.results[0] = call.cluster.virtual_memory.add_handle(call.process.rank, object);
  if (answer.results[0] == 0) answer.status = kCudaMemoryAllocation;
  call.done(cost, answer);
}

void answer_if(Call& call, bool valid, Time cost) {
  if (valid) return call.done(cost);
  call.fail(kCudaInvalidValue);
}

/// False: the call waits until all devices have joined.
bool is_complete(Call& call, const MemoryObjectPtr& multicast) {
  if (!multicast->is_multicast() || multicast->is_complete()) return true;
  call.again([multicast] { return multicast->is_complete(); },
             "waits until all devices are added to a multicast object");
  return false;
}

void bind_memory(Call& call, const MemoryObjectPtr& target, uint64_t offset,
                 const MemoryObjectPtr& memory, uint64_t memory_offset, uint64_t bytes) {
  VirtualMemory& virtual_memory = call.cluster.virtual_memory;
  if (!virtual_memory.can_bind(*target, offset, *memory, memory_offset, bytes)) {
    return call.fail(kCudaInvalidValue);
  }
  if (!virtual_memory.bind(*target, offset, memory, memory_offset, bytes)) {
    return call.fail(kCudaMemoryAllocation);
  }
  call.done(call.cluster.costs.malloc);
}

}  // namespace

// cuMemCreate, cuMemMap, cuMemSetAccess and their like change page tables as cudaMalloc and
// cudaFree do, and are charged as those.

void mem_create(Call& call) {
  std::optional<int> device = call.device(call.arg(1));
  if (!device) return;
  uint64_t bytes = call.arg(0);
  if (bytes == 0 || bytes % kGranularity != 0) return call.fail(kCudaInvalidValue);
  MemoryObjectPtr made = call.cluster.virtual_memory.create(
      call.process.rank, *device, call.process.node, bytes, static_cast<uint32_t>(call.arg(2)));
  if (made == nullptr)
    return call.done(call.cluster.costs.malloc, {.status = kCudaMemoryAllocation});
  answer_handle(call, made, call.cluster.costs.malloc);
}

void mem_release(Call& call) {
  bool known = call.cluster.virtual_memory.release(call.process.rank, call.arg(0));
  answer_if(call, known, call.cluster.costs.call);
}

void mem_reserve(Call& call) {
  constexpr uint64_t kHostPage = 4096;
  uint64_t bytes = call.arg(0);
  uint64_t align = call.arg(1);
  bool valid = bytes > 0 && bytes % kHostPage == 0 && (align == 0 || std::has_single_bit(align));
  if (!valid) return call.fail(kCudaInvalidValue);
  const Allocation* made =
      call.cluster.memory.reserve(call.process.rank, bytes, std::max(align, kGranularity));
  Answer answer;
  if (made == nullptr) {
    answer.status = kCudaMemoryAllocation;
  } else {
    answer.results[0] = made->base;
  }
  call.done(call.cluster.costs.call, answer);
}

void mem_unreserve(Call& call) {
  bool valid = call.cluster.virtual_memory.unreserve(call.process.rank, call.arg(0), call.arg(1));
  answer_if(call, valid, call.cluster.costs.call);
}

void mem_map(Call& call) {
  MemoryObjectPtr wanted = object(call, call.arg(3));
  if (wanted == nullptr || !is_complete(call, wanted)) return;
  VirtualMemory& virtual_memory = call.cluster.virtual_memory;
  uint64_t address = call.arg(0), bytes = call.arg(1), offset = call.arg(2);
  if (!virtual_memory.can_map(call.process.rank, address, bytes, offset, *wanted)) {
    return call.fail(kCudaInvalidValue);
  }
  if (!virtual_memory.map(call.process.rank, address, bytes, offset, wanted)) {
    return call.fail(kCudaMemoryAllocation);
  }
  call.done(call.cluster.costs.malloc);
}

void mem_unmap(Call& call) {
  bool valid = call.cluster.virtual_memory.unmap(call.process.rank, call.arg(0), call.arg(1));
  answer_if(call, valid, call.cluster.costs.free);
}

void mem_set_access(Call& call) {
  std::optional<int> device = call.device(call.arg(2));
  if (!device) return;
  uint64_t flags = call.arg(3);
  bool known = flags == 0 || flags == kRead || flags == kReadWrite;
  bool valid = known && call.cluster.virtual_memory.set_access(
                            call.process.rank, call.arg(0), call.arg(1), *device,
                            (flags & kRead) != 0, flags == kReadWrite);
  answer_if(call, valid, call.cluster.costs.malloc);
}

void mem_get_access(Call& call) {
  std::optional<int> device = call.device(call.arg(1));
  if (!device) return;
  const Allocation* found = call.cluster.memory.find(call.arg(0));
  bool is_own = found != nullptr && found->by_access && found->rank == call.process.rank;
  if (!is_own) return call.fail(kCudaInvalidValue);
  bool read = (found->readers >> *device & 1) != 0;
  bool write = (found->writers >> *device & 1) != 0;
  Answer answer;
  answer.results[0] = write ? kReadWrite : read ? kRead : 0;
  call.done(call.cluster.costs.call, answer);
}

void mem_retain(Call& call) {
  uint64_t offset;
  MemoryObjectPtr found =
      call.cluster.virtual_memory.mapped_at(call.process.rank, call.arg(0), offset);
  if (found == nullptr) return call.fail(kCudaInvalidValue);
  answer_handle(call, found, call.cluster.costs.call);
}

void mem_properties(Call& call) {
  MemoryObjectPtr found = object(call, call.arg(0));
  if (found == nullptr) return;
  Answer answer;
  answer.results[0] = found->is_multicast() ? 1 : 0;
  answer.results[1] = static_cast<uint64_t>(found->device % call.cluster.profile.devices_per_node);
  answer.results[2] = found->handle_types;
  call.done(call.cluster.costs.call, answer);
}

void mem_export(Call& call) {
  MemoryObjectPtr found = object(call, call.arg(0));
  if (found == nullptr) return;
  if ((found->handle_types & kPosixDescriptor) == 0) return call.fail(kCudaInvalidValue);
  UniqueFd token = call.cluster.virtual_memory.export_object(call.process.rank, found);
  if (!token) return call.fail(kCudaMemoryAllocation);
  int fds[] = {token.get()};
  call.done(call.cluster.costs.ipc_open, {}, fds);
}

void mem_import(Call& call) {
  MemoryObjectPtr found = call.fd < 0 ? nullptr : call.cluster.virtual_memory.object_of(call.fd);
  if (found == nullptr || found->pool != 0 || found->node != call.process.node) {
    return call.fail(kCudaInvalidValue);
  }
  answer_handle(call, found, call.cluster.costs.ipc_open);
}

void multicast_create(Call& call) {
  const Profile& profile = call.cluster.profile;
  if (profile.device.multicast_supported == 0) return call.fail(kCudaNotSupported);
  uint64_t bytes = call.arg(0), num_devices = call.arg(1);
  bool valid = bytes > 0 && bytes % kGranularity == 0 && bytes <= kArenaBytes && num_devices > 0 &&
               num_devices <= static_cast<uint64_t>(profile.devices_per_node);
  if (!valid) return call.fail(kCudaInvalidValue);
  auto made = std::make_shared<MemoryObject>(call.cluster.memory);
  made->bytes = bytes;
  made->node = call.process.node;
  made->handle_types = static_cast<uint32_t>(call.arg(2));
  made->num_devices = static_cast<uint32_t>(num_devices);
  answer_handle(call, made, call.cluster.costs.malloc);
}

void multicast_add(Call& call) {
  std::optional<int> device = call.device(call.arg(1));
  if (!device) return;
  MemoryObjectPtr target = multicast(call, call.arg(0));
  if (target == nullptr) return;
  bool valid = call.cluster.virtual_memory.add_device(*target, *device);
  answer_if(call, valid, call.cluster.costs.malloc);
}

void multicast_bind(Call& call) {
  MemoryObjectPtr target = multicast(call, call.arg(0));
  if (target == nullptr) return;
  MemoryObjectPtr memory = object(call, call.arg(2));
  if (memory == nullptr || !is_complete(call, target)) return;
  bind_memory(call, target, call.arg(1), memory, call.arg(3), call.arg(4));
}

void multicast_bind_address(Call& call) {
  MemoryObjectPtr target = multicast(call, call.arg(0));
  if (target == nullptr || !is_complete(call, target)) return;
  uint64_t memory_offset = 0;
  MemoryObjectPtr memory =
      call.cluster.virtual_memory.mapped_at(call.process.rank, call.arg(2), memory_offset);
  if (memory == nullptr) return call.fail(kCudaInvalidValue);
  bind_memory(call, target, call.arg(1), memory, memory_offset, call.arg(3));
}

void multicast_unbind(Call& call) {
  std::optional<int> device = call.device(call.arg(1));
  if (!device) return;
  MemoryObjectPtr target = multicast(call, call.arg(0));
  if (target == nullptr) return;
  bool valid = call.cluster.virtual_memory.unbind(*target, *device, call.arg(2), call.arg(3));
  answer_if(call, valid, call.cluster.costs.free);
}

}  // namespace cb::sim
