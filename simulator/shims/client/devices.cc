#include "simulator/shims/client/devices.h"

#include <algorithm>
#include <atomic>

#include "simulator/shims/client/allocations.h"
#include "simulator/shims/client/attributes.h"
#include "simulator/shims/client/call.h"
#include "simulator/shims/client/capture.h"
#include "simulator/shims/client/events.h"
#include "simulator/shims/client/memory_pools.h"
#include "simulator/shims/client/modules.h"
#include "simulator/shims/client/peers.h"
#include "simulator/shims/client/process.h"
#include "simulator/shims/client/registrations.h"
#include "simulator/shims/client/streams.h"

namespace cb::sim::client {
namespace {

constexpr int kNumLimits = cudaLimitPersistingL2CacheSize + 1;
constexpr size_t kDefaultLimits[kNumLimits] = {
    1024,             // stack bytes per thread
    size_t{1} << 20,  // printf buffer
    size_t{8} << 20,  // malloc heap
    2,                // synchronisation depth, before compute capability 9.0
    2048,             // pending launches
    64,               // L2 fetch granularity
    0,                // persisting L2
};

/// A limit plus one; 0 while it has its default.
std::atomic<size_t> limits[kMaxDevices][kNumLimits];
std::atomic<unsigned> flags_of[kMaxDevices];

bool has_limit(int device, int limit) {
  return limit != cudaLimitDevRuntimeSyncDepth || device_info(device).compute_major < 9;
}

}  // namespace

cudaError_t synchronize_device() {
  cudaError_t error = refuse_during_capture();
  if (error != cudaSuccess) return error;
  return Call(Op::kDeviceSync).args(this_thread().device()).wait();
}

cudaError_t reset_device() {
  int device = this_thread().device();
  cudaError_t error = Call(Op::kDeviceReset).args(device).wait();
  if (error != cudaSuccess) return error;
  remove_registrations_of(device);
  remove_allocations_of(device);
  remove_streams_of(device);
  remove_pools_of(device);
  remove_events_of(device);
  forget_peer_access(device);
  forget_variable_addresses(device);
  for (auto& limit : limits[device]) limit.store(0);
  flags_of[device].store(0);
  return cudaSuccess;
}

cudaError_t find_by_pci_bus_id(int* device, const char* text) {
  int domain, bus, slot;
  if (!parse_pci_bus_id(text, &domain, &bus, &slot)) return cudaErrorInvalidValue;
  for (int at = 0; at < device_count(); ++at) {
    int its_domain, its_bus, its_slot;
    if (parse_pci_bus_id(device_info(at).pci_bus_id, &its_domain, &its_bus, &its_slot) &&
        domain == its_domain && bus == its_bus && slot == its_slot) {
      *device = at;
      return cudaSuccess;
    }
  }
  return cudaErrorInvalidDevice;
}

cudaError_t set_limit(cudaLimit limit, size_t value) {
  int device = this_thread().device();
  if (limit < 0 || limit >= kNumLimits) return cudaErrorInvalidValue;
  if (!has_limit(device, limit)) return cudaErrorUnsupportedLimit;
  if (limit == cudaLimitMaxL2FetchGranularity && value > 128) return cudaErrorInvalidValue;
  if (limit == cudaLimitPersistingL2CacheSize) {
    int most = 0;
    device_attribute(device_info(device), cudaDevAttrMaxPersistingL2CacheSize, &most);
    value = std::min<size_t>(value, most);
  }
  limits[device][limit].store(value + 1);
  return cudaSuccess;
}

cudaError_t get_limit(size_t* value, cudaLimit limit) {
  int device = this_thread().device();
  if (value == nullptr || limit < 0 || limit >= kNumLimits) return cudaErrorInvalidValue;
  if (!has_limit(device, limit)) return cudaErrorUnsupportedLimit;
  size_t set = limits[device][limit].load();
  *value = set > 0 ? set - 1 : kDefaultLimits[limit];
  return cudaSuccess;
}

cudaError_t check_flags(unsigned flags) {
  constexpr unsigned kFlags =
      cudaDeviceScheduleMask | cudaDeviceMapHost | cudaDeviceLmemResizeToMax | cudaDeviceSyncMemops;
  unsigned schedule = flags & cudaDeviceScheduleMask;
  bool one_schedule = (schedule & (schedule - 1)) == 0;
  return (flags & ~kFlags) == 0 && one_schedule ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t set_flags(int device, unsigned flags) {
  cudaError_t error = check_flags(flags);
  if (error == cudaSuccess) flags_of[device].store(flags);
  return error;
}

unsigned get_flags(int device) { return flags_of[device].load() | cudaDeviceMapHost; }

cudaError_t memory_info(size_t* free_bytes, size_t* total_bytes) {
  if (free_bytes == nullptr || total_bytes == nullptr) return cudaErrorInvalidValue;
  Call call(Op::kMemInfo);
  call.args(this_thread().device());
  cudaError_t error = call.wait();
  if (error != cudaSuccess) return error;
  *free_bytes = call.result(0);
  *total_bytes = call.result(1);
  return cudaSuccess;
}

cudaError_t check_cache_config(int kind) {
  bool known = kind >= cudaFuncCachePreferNone && kind <= cudaFuncCachePreferEqual;
  return known ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t check_shared_config(int config) {
  bool known = config >= cudaSharedMemBankSizeDefault && config <= cudaSharedMemBankSizeEightByte;
  return known ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t flush_rdma_writes(int target, int scope) {
  bool known = target == cudaFlushGPUDirectRDMAWritesTargetCurrentDevice &&
               (scope == cudaFlushGPUDirectRDMAWritesToOwner ||
                scope == cudaFlushGPUDirectRDMAWritesToAllDevices);
  return known ? cudaSuccess : cudaErrorInvalidValue;
}

}  // namespace cb::sim::client
