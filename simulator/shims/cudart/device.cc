#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "simulator/shims/client/attributes.h"
#include "simulator/shims/client/devices.h"
#include "simulator/shims/client/streams.h"
#include "simulator/shims/cudart/api.h"

using namespace cb::sim::client;

CB_API cudaError_t cudaGetDeviceCount(int* count) {
  if (count != nullptr) *count = 0;
  return query([&] {
    if (count == nullptr) return cudaErrorInvalidValue;
    *count = device_count();
    return cudaSuccess;
  });
}

CB_API cudaError_t cudaGetDevice(int* device) {
  return query([&] {
    if (device == nullptr) return cudaErrorInvalidValue;
    *device = this_thread().device();
    return cudaSuccess;
  });
}

CB_API cudaError_t cudaSetDevice(int device) {
  return query([&] {
    if (!is_device(device)) return cudaErrorInvalidDevice;
    this_thread().set_device(device);
    return begin();
  });
}

CB_API cudaError_t cudaInitDevice(int device, unsigned device_flags, unsigned flags) {
  return query([&] {
    if (!is_device(device)) return cudaErrorInvalidDevice;
    if ((flags & ~unsigned{cudaInitDeviceFlagsAreValid}) != 0) return cudaErrorInvalidValue;
    return flags != 0 ? set_flags(device, device_flags) : cudaSuccess;
  });
}

CB_API cudaError_t cudaSetValidDevices(int* devices, int count) {
  return query([&] {
    if (count < 0 || count > device_count() || (count > 0 && devices == nullptr)) {
      return cudaErrorInvalidValue;
    }
    for (int at = 0; at < count; ++at) {
      if (!is_device(devices[at])) return cudaErrorInvalidDevice;
    }
    // The list only says which device a thread gets that chose none.
    return count == 0 || devices[0] == 0 ? cudaSuccess
                                         : CB_REFUSE(
                                               "cudaSetValidDevices with another first "
                                               "device than 0");
  });
}

CB_API cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp* wanted) {
  return query([&] {
    if (device == nullptr || wanted == nullptr) return cudaErrorInvalidValue;
    // All devices of a node are alike, so that none matches better than the first.
    *device = 0;
    return cudaSuccess;
  });
}

CB_API cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return query([&] {
    if (properties == nullptr) return cudaErrorInvalidValue;
    if (!is_device(device)) return cudaErrorInvalidDevice;
    *properties = device_properties(device_info(device));
    return cudaSuccess;
  });
}

CB_API cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return query([&] {
    if (value == nullptr) return cudaErrorInvalidValue;
    if (!is_device(device)) return cudaErrorInvalidDevice;
    return device_attribute(device_info(device), attribute, value) ? cudaSuccess
                                                                   : cudaErrorInvalidValue;
  });
}

CB_API cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device) {
  return query([&] {
    if (text == nullptr || size <= 0) return cudaErrorInvalidValue;
    if (!is_device(device)) return cudaErrorInvalidDevice;
    const char* id = device_info(device).pci_bus_id;
    if (static_cast<size_t>(size) <= strlen(id)) return cudaErrorInvalidValue;
    strcpy(text, id);
    return cudaSuccess;
  });
}

CB_API cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* text) {
  return query(
      [&] { return device == nullptr ? cudaErrorInvalidValue : find_by_pci_bus_id(device, text); });
}

CB_API cudaError_t cudaDeviceSynchronize() { return api(synchronize_device); }

CB_API cudaError_t cudaDeviceReset() { return api(reset_device); }

CB_API cudaError_t cudaSetDeviceFlags(unsigned flags) {
  return query([&] { return set_flags(this_thread().device(), flags); });
}

CB_API cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  return query([&] {
    if (flags == nullptr) return cudaErrorInvalidValue;
    *flags = get_flags(this_thread().device());
    return cudaSuccess;
  });
}

CB_API cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  return api([&] { return set_limit(limit, value); });
}

CB_API cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  return api([&] { return get_limit(value, limit); });
}

CB_API cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return api([&] {
    if (least != nullptr) *least = kLeastPriority;
    if (greatest != nullptr) *greatest = kGreatestPriority;
    return cudaSuccess;
  });
}

// The split between L1 and shared memory is a preference, which does not change results.
CB_API cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache config) {
  return api([&] { return check_cache_config(config); });
}

CB_API cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  return api([&] {
    if (config == nullptr) return cudaErrorInvalidValue;
    *config = cudaFuncCachePreferNone;
    return cudaSuccess;
  });
}

CB_API cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig config) {
  return api([&] { return check_shared_config(config); });
}

CB_API cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
  return api([&] {
    if (config == nullptr) return cudaErrorInvalidValue;
    *config = cudaSharedMemBankSizeFourByte;
    return cudaSuccess;
  });
}

CB_API cudaError_t cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTarget target,
                                                      cudaFlushGPUDirectRDMAWritesScope scope) {
  return api([&] { return flush_rdma_writes(target, scope); });
}

CB_API cudaError_t cudaCtxResetPersistingL2Cache() {
  return api([] { return cudaSuccess; });
}
