#include "simulator/shims/client/managed.h"

#include "simulator/shims/client/allocations.h"
#include "simulator/shims/client/call.h"
#include "simulator/shims/client/capture.h"
#include "simulator/shims/client/errors.h"
#include "simulator/shims/client/list.h"
#include "simulator/shims/client/mutex.h"
#include "simulator/shims/client/process.h"
#include "simulator/shims/client/report.h"
#include "simulator/shims/client/window.h"

namespace cb::sim::client {
namespace {

struct Place {
  int type = cudaMemLocationTypeInvalid;
  int id = cudaInvalidDeviceId;

  /// As the older attributes say it.
  int device() const {
    return type == cudaMemLocationTypeInvalid  ? cudaInvalidDeviceId
           : type == cudaMemLocationTypeDevice ? id
                                               : cudaCpuDeviceId;
  }
};

/// What a program has said about an allocation; ranges inside it are not told apart.
struct Advice {
  uint64_t base = 0;
  uint64_t bytes = 0;
  bool read_mostly = false;
  bool accessed_by_host = false;
  uint32_t accessed_by = 0;  ///< bit d: device d
  Place preferred, prefetched;
};

Mutex mutex;
List<Advice> allocations;

/// With the lock held; nullptr when the range is not inside one managed allocation.
Advice* find(const void* pointer, size_t bytes) {
  auto address = reinterpret_cast<uint64_t>(pointer);
  for (size_t at = 0; at < allocations.size(); ++at) {
    uint64_t offset = address - allocations[at].base;
    if (offset >= allocations[at].bytes) continue;
    return bytes <= allocations[at].bytes - offset ? &allocations[at] : nullptr;
  }
  return nullptr;
}

cudaError_t place_of(int type, int id, Place* place) {
  place->type = type;
  place->id = type == cudaMemLocationTypeHost ? cudaCpuDeviceId : id;
  switch (type) {
    case cudaMemLocationTypeDevice:
      return is_device(id) ? cudaSuccess : cudaErrorInvalidDevice;
    case cudaMemLocationTypeHost:
    case cudaMemLocationTypeHostNumaCurrent:
      return cudaSuccess;
    case cudaMemLocationTypeHostNuma:
      return id == 0 ? cudaSuccess : cudaErrorInvalidDevice;
    default:
      return cudaErrorInvalidValue;
  }
}

int attribute_value(const Advice& advice, int attribute) {
  switch (attribute) {
    case cudaMemRangeAttributeReadMostly:
      return advice.read_mostly ? 1 : 0;
    case cudaMemRangeAttributePreferredLocation:
      return advice.preferred.device();
    case cudaMemRangeAttributeLastPrefetchLocation:
      return advice.prefetched.device();
    case cudaMemRangeAttributePreferredLocationType:
      return advice.preferred.type;
    case cudaMemRangeAttributePreferredLocationId:
      return advice.preferred.id;
    case cudaMemRangeAttributeLastPrefetchLocationType:
      return advice.prefetched.type;
    default:
      return advice.prefetched.id;
  }
}

/// Fills with the devices, and the host, that the range has been said to be accessed by.
void list_accessors(const Advice& advice, int* list, size_t room) {
  size_t at = 0;
  if (advice.accessed_by_host && at < room) list[at++] = cudaCpuDeviceId;
  for (int device = 0; device < kMaxDevices && at < room; ++device) {
    if ((advice.accessed_by >> device & 1) != 0) list[at++] = device;
  }
  while (at < room) list[at++] = cudaInvalidDeviceId;
}

}  // namespace

cudaError_t allocate_managed(void** pointer, size_t bytes, unsigned flags) {
  if (pointer == nullptr || bytes == 0 ||
      (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost)) {
    return cudaErrorInvalidValue;
  }
  cudaError_t error = refuse_during_capture();
  if (error != cudaSuccess) return error;
  int device = this_thread().device();
  int fd;
  Call call(Op::kHostAlloc);
  call.args(bytes, 0, device, 1).receive_fds(&fd, 1);
  error = call.wait();
  if (error != cudaSuccess) return error;
  Allocation allocation;
  allocation.base = call.result(0);
  Advice advice;
  advice.base = allocation.base;
  advice.bytes = bytes;
  {
    Lock lock(mutex);
    allocation.bytes = map_pinned(allocation.base, fd);
    if (allocation.bytes != 0 && !allocations.push(advice)) allocation.bytes = 0;
  }
  if (allocation.bytes == 0) {
    Call(Op::kHostFree).args(allocation.base).wait();
    return cudaErrorMemoryAllocation;
  }
  allocation.device = device;
  allocation.flags = flags;
  allocation.kind = AllocationKind::kManaged;
  add_allocation(allocation);
  *pointer = reinterpret_cast<void*>(allocation.base);
  return cudaSuccess;
}

cudaError_t release_managed(void* pointer) {
  auto address = reinterpret_cast<uint64_t>(pointer);
  Allocation known;
  if (!find_allocation(address, &known) || known.base != address ||
      !remove_allocation(address, &known)) {
    return cudaErrorInvalidValue;
  }
  {
    Lock lock(mutex);
    for (size_t at = allocations.size(); at-- > 0;) {
      if (allocations[at].base == address) allocations.erase(at);
    }
  }
  unmap_pinned(known.base, known.bytes);
  return Call(Op::kHostFree).args(address).wait();
}

cudaError_t prefetch_managed(const void* pointer, size_t bytes, int location_type, int location,
                             unsigned flags, cudaStream_t handle, DefaultStream null_means) {
  Stream stream;
  Place place;
  if (flags != 0 || bytes == 0) return cudaErrorInvalidValue;
  if (!find_stream(handle, null_means, &stream)) return cudaErrorInvalidResourceHandle;
  cudaError_t error = place_of(location_type, location, &place);
  if (error == cudaSuccess) error = refuse_in_capture(stream);
  if (error != cudaSuccess) return error;
  {
    Lock lock(mutex);
    if (find(pointer, bytes) == nullptr) return cudaErrorInvalidValue;
  }
  uint64_t target =
      place.type == cudaMemLocationTypeDevice ? static_cast<uint64_t>(place.id) : ~uint64_t{0};
  error = Call(Op::kManagedPrefetch)
              .args(reinterpret_cast<uint64_t>(pointer), bytes, stream.id, stream.device, target)
              .on(stream.device)
              .wait();
  if (error != cudaSuccess) return error;
  Lock lock(mutex);
  if (Advice* advice = find(pointer, bytes)) advice->prefetched = place;
  return cudaSuccess;
}

cudaError_t advise_managed(const void* pointer, size_t bytes, int advice, int location_type,
                           int location) {
  Place place;
  bool needs_place =
      advice >= cudaMemAdviseSetPreferredLocation && advice != cudaMemAdviseUnsetPreferredLocation;
  cudaError_t error = needs_place ? place_of(location_type, location, &place) : cudaSuccess;
  if (error != cudaSuccess) return error;
  Lock lock(mutex);
  Advice* known = find(pointer, bytes);
  if (known == nullptr || bytes == 0) return cudaErrorInvalidValue;
  uint32_t bit = place.type == cudaMemLocationTypeDevice ? uint32_t{1} << place.id : 0;
  switch (advice) {
    case cudaMemAdviseSetReadMostly:
    case cudaMemAdviseUnsetReadMostly:
      known->read_mostly = advice == cudaMemAdviseSetReadMostly;
      return cudaSuccess;
    case cudaMemAdviseSetPreferredLocation:
    case cudaMemAdviseUnsetPreferredLocation:
      known->preferred = place;
      return cudaSuccess;
    case cudaMemAdviseSetAccessedBy:
      known->accessed_by |= bit;
      if (bit == 0) known->accessed_by_host = true;
      return cudaSuccess;
    case cudaMemAdviseUnsetAccessedBy:
      known->accessed_by &= ~bit;
      if (bit == 0) known->accessed_by_host = false;
      return cudaSuccess;
    default:
      return cudaErrorInvalidValue;
  }
}

cudaError_t managed_range_attribute(void* data, size_t data_bytes, int attribute,
                                    const void* pointer, size_t bytes) {
  Lock lock(mutex);
  Advice* known = find(pointer, bytes);
  if (known == nullptr || bytes == 0 || data == nullptr ||
      attribute < cudaMemRangeAttributeReadMostly ||
      attribute > cudaMemRangeAttributeLastPrefetchLocationId) {
    return cudaErrorInvalidValue;
  }
  auto* values = static_cast<int*>(data);
  if (attribute == cudaMemRangeAttributeAccessedBy) {
    if (data_bytes == 0 || data_bytes % sizeof(int) != 0) return cudaErrorInvalidValue;
    list_accessors(*known, values, data_bytes / sizeof(int));
    return cudaSuccess;
  }
  if (data_bytes != sizeof(int)) return cudaErrorInvalidValue;
  *values = attribute_value(*known, attribute);
  return cudaSuccess;
}

cudaError_t attach_managed(cudaStream_t handle, const void* pointer, size_t bytes, unsigned flags,
                           DefaultStream null_means) {
  Stream stream;
  if (!find_stream(handle, null_means, &stream)) return cudaErrorInvalidResourceHandle;
  bool known =
      flags == cudaMemAttachGlobal || flags == cudaMemAttachHost || flags == cudaMemAttachSingle;
  // No single stream can be meant by the default streams.
  bool is_default = stream.id == kNullStream || stream.id == kPerThreadStream;
  if (!known || (flags == cudaMemAttachSingle && is_default)) return cudaErrorInvalidValue;
  Lock lock(mutex);
  Advice* found = find(pointer, bytes);
  auto address = reinterpret_cast<uint64_t>(pointer);
  bool whole = found != nullptr && found->base == address && (bytes == 0 || bytes == found->bytes);
  // Devices with concurrent managed access let every stream touch it in any case.
  return whole ? cudaSuccess : cudaErrorInvalidValue;
}

}  // namespace cb::sim::client
