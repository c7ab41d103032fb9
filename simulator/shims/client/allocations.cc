#include "simulator/shims/client/allocations.h"

#include "simulator/shims/client/call.h"
#include "simulator/shims/client/capture.h"
#include "simulator/shims/client/list.h"
#include "simulator/shims/client/managed.h"
#include "simulator/shims/client/mutex.h"
#include "simulator/shims/client/process.h"
#include "simulator/shims/client/window.h"

namespace cb::sim::client {
namespace {

/// What rows of pitched memory are aligned to on Ampere and Hopper.
constexpr size_t kPitchAlignment = 512;

Mutex mutex;
List<Allocation> allocations;  // by base

size_t slot_of(uint64_t base) {
  return allocations.lower_bound(base, [](const Allocation& entry) { return entry.base; });
}

/// The entry that contains `address`, or nullptr. The caller holds the lock.
Allocation* entry_at(uint64_t address) {
  size_t at = slot_of(address + 1);
  if (at == 0) return nullptr;
  Allocation& entry = allocations[at - 1];
  return address - entry.base < entry.bytes ? &entry : nullptr;
}

}  // namespace

void add_allocation(const Allocation& allocation) {
  Lock lock(mutex);
  size_t at = slot_of(allocation.base);
  if (at < allocations.size() && allocations[at].base == allocation.base) {
    int opened = allocations[at].opened + allocation.opened;
    allocations[at] = allocation;
    allocations[at].opened = opened;
    return;
  }
  allocations.insert(at, allocation);
}

bool find_allocation(uint64_t address, Allocation* found) {
  Lock lock(mutex);
  Allocation* entry = entry_at(address);
  if (entry == nullptr) return false;
  *found = *entry;
  return true;
}

bool remove_allocation(uint64_t base, Allocation* removed) {
  Lock lock(mutex);
  size_t at = slot_of(base);
  if (at == allocations.size() || allocations[at].base != base) return false;
  *removed = allocations[at];
  if (--allocations[at].opened <= 0) allocations.erase(at);
  return true;
}

void remove_allocations_of(int device) {
  Lock lock(mutex);
  for (size_t at = allocations.size(); at-- > 0;) {
    if (allocations[at].device != device) continue;
    if (allocations[at].kind == AllocationKind::kPinned ||
        allocations[at].kind == AllocationKind::kManaged) {
      unmap_pinned(allocations[at].base, allocations[at].bytes);
    }
    allocations.erase(at);
  }
}

bool is_known_range(uint64_t address, uint64_t bytes) {
  Lock lock(mutex);
  Allocation* entry = entry_at(address);
  return entry != nullptr && bytes <= entry->base + entry->bytes - address;
}

bool is_pinned(uint64_t address) {
  Lock lock(mutex);
  Allocation* entry = entry_at(address);
  return entry != nullptr &&
         (entry->kind == AllocationKind::kPinned || entry->kind == AllocationKind::kRegistered ||
          entry->kind == AllocationKind::kManaged);
}

bool is_host_allocation(const void* pointer) {
  Allocation known;
  return find_allocation(reinterpret_cast<uint64_t>(pointer), &known) &&
         (known.kind == AllocationKind::kPinned || known.kind == AllocationKind::kRegistered);
}

bool set_sync_memops(uint64_t address, bool wanted) {
  Lock lock(mutex);
  Allocation* entry = entry_at(address);
  if (entry == nullptr) return false;
  entry->sync_memops = wanted;
  return true;
}

bool has_sync_memops(uint64_t address) {
  Lock lock(mutex);
  Allocation* entry = entry_at(address);
  return entry != nullptr && entry->sync_memops;
}

cudaError_t allocate(void** pointer, size_t bytes) {
  if (pointer == nullptr) return cudaErrorInvalidValue;
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  cudaError_t error = refuse_during_capture();
  if (error != cudaSuccess) return error;
  int device = this_thread().device();
  Call call(Op::kMalloc);
  call.args(bytes, device);
  error = call.wait();
  if (error != cudaSuccess) return error;
  Allocation allocation;
  allocation.base = call.result(0);
  allocation.bytes = bytes;
  allocation.device = device;
  add_allocation(allocation);
  *pointer = reinterpret_cast<void*>(allocation.base);
  return cudaSuccess;
}

cudaError_t release(void* pointer) {
  if (pointer == nullptr) return cudaSuccess;
  auto address = reinterpret_cast<uint64_t>(pointer);
  if (!in_window(address)) return cudaErrorInvalidValue;
  Allocation known;
  if (find_allocation(address, &known) && known.kind == AllocationKind::kManaged) {
    return release_managed(pointer);
  }
  if (find_allocation(address, &known) && known.kind != AllocationKind::kDevice &&
      known.kind != AllocationKind::kPooled) {
    return cudaErrorInvalidValue;
  }
  cudaError_t error = refuse_during_capture();
  if (error != cudaSuccess) return error;
  Call call(Op::kFree);
  call.args(address);
  error = call.wait();
  if (error == cudaSuccess) remove_allocation(address, &known);
  return error;
}

cudaError_t allocate_host(void** pointer, size_t bytes, unsigned flags) {
  constexpr unsigned kFlags =
      cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
  if (pointer == nullptr || (flags & ~kFlags) != 0) return cudaErrorInvalidValue;
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  int device = this_thread().device();
  int fd;
  Call call(Op::kHostAlloc);
  call.args(bytes, flags, device).receive_fds(&fd, 1);
  cudaError_t error = call.wait();
  if (error != cudaSuccess) return error;
  Allocation allocation;
  allocation.base = call.result(0);
  allocation.bytes = map_pinned(allocation.base, fd);
  if (allocation.bytes == 0) {
    Call(Op::kHostFree).args(allocation.base).wait();
    return cudaErrorMemoryAllocation;
  }
  allocation.device = device;
  allocation.flags = flags;
  allocation.kind = AllocationKind::kPinned;
  add_allocation(allocation);
  *pointer = reinterpret_cast<void*>(allocation.base);
  return cudaSuccess;
}

cudaError_t release_host(void* pointer) {
  if (pointer == nullptr) return cudaSuccess;
  auto address = reinterpret_cast<uint64_t>(pointer);
  Allocation known;
  if (!find_allocation(address, &known) || known.base != address ||
      known.kind != AllocationKind::kPinned || !remove_allocation(address, &known)) {
    return cudaErrorInvalidValue;
  }
  // The range may be handed out again as soon as the daemon knows that it is free.
  unmap_pinned(known.base, known.bytes);
  return Call(Op::kHostFree).args(address).wait();
}

cudaError_t allocate_pitched(void** pointer, size_t* pitch, size_t width, size_t rows) {
  if (pointer == nullptr || pitch == nullptr) return cudaErrorInvalidValue;
  size_t stride = (width + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
  if (stride < width || (rows != 0 && stride > SIZE_MAX / rows)) return cudaErrorMemoryAllocation;
  cudaError_t error = allocate(pointer, stride * rows);
  if (error == cudaSuccess) *pitch = stride;
  return error;
}

}  // namespace cb::sim::client
