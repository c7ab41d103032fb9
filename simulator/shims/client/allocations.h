#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace cb::sim::client {

enum class AllocationKind : uint8_t {
  kDevice,
  kPinned,
  kImported,
  kSymbol,
  kPooled,      ///< of a pool, also an imported one
  kRegistered,  ///< the device's name of the program's own pages
  kManaged,
};

/// Memory that this process got from the simulator. The daemon alone decides what is valid; the
/// table answers which side of a copy is host memory, and lets copies between known ranges go
/// without a reply.
struct Allocation {
  uint64_t base = 0;
  uint64_t bytes = 0;
  int device = 0;
  unsigned flags = 0;  ///< of cudaHostAlloc
  AllocationKind kind = AllocationKind::kDevice;
  void* pool = nullptr;      ///< kPooled: its handle
  int opened = 0;            ///< kImported: how often
  bool sync_memops = false;  ///< CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: copies and fills wait
};

/// Remembers `allocation`; one of the same base is replaced, an import counted.
void add_allocation(const Allocation& allocation);
/// The allocation that contains `address`.
bool find_allocation(uint64_t address, Allocation* found);
/// Forgets the allocation that starts at `address` (an import: when it was closed as often as
/// opened) and returns what it was.
bool remove_allocation(uint64_t base, Allocation* removed);
/// Forgets all that lies on `device`.
void remove_allocations_of(int device);

/// True when all of [address, address + bytes) is in one known allocation.
bool is_known_range(uint64_t address, uint64_t bytes);
bool is_pinned(uint64_t address);

/// cudaMalloc and its relatives, without recording errors.
/// Of cudaHostAlloc, or registered.
bool is_host_allocation(const void* pointer);
/// CU_POINTER_ATTRIBUTE_SYNC_MEMOPS of the allocation; false: there is none.
bool set_sync_memops(uint64_t address, bool wanted);
bool has_sync_memops(uint64_t address);

cudaError_t allocate(void** pointer, size_t bytes);
cudaError_t release(void* pointer);
cudaError_t allocate_host(void** pointer, size_t bytes, unsigned flags);
cudaError_t release_host(void* pointer);
/// Rows are as far apart as the returned pitch.
cudaError_t allocate_pitched(void** pointer, size_t* pitch, size_t width, size_t rows);

}  // namespace cb::sim::client
