#include <cstring>

#include "simulator/shims/client/attributes.h"
#include "simulator/shims/client/devices.h"
#include "simulator/shims/client/peers.h"
#include "simulator/shims/cuda/driver.h"

// The header maps the plain name to the newest version; both are defined here.
#undef cuDeviceGetUuid

using namespace cb::sim::client;

CB_DRIVER CUresult cuInit(unsigned flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  cudaError_t error = link_error();
  if (error != cudaSuccess) return to_result(error);
  process.driver_initialized.store(true, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

CB_DRIVER CUresult cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

namespace {

/// Checks a device and a result pointer, then runs `body`.
template <class Result, class Body>
CUresult about_device(Result* result, CUdevice device, Body body) {
  return driver_call([&] {
    if (result == nullptr) return cudaErrorInvalidValue;
    if (!is_device(device)) return cudaErrorInvalidDevice;
    return body(device_info(device));
  });
}

CUresult get_uuid(CUuuid* uuid, CUdevice device) {
  return about_device(uuid, device, [&](const cb::sim::DeviceInfo& info) {
    memcpy(uuid->bytes, info.uuid, sizeof uuid->bytes);
    return cudaSuccess;
  });
}

}  // namespace

CB_DRIVER CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return about_device(device, ordinal, [&](const cb::sim::DeviceInfo&) {
    *device = ordinal;
    return cudaSuccess;
  });
}

CB_DRIVER CUresult cuDeviceGetCount(int* count) {
  return driver_call([&] {
    if (count == nullptr) return cudaErrorInvalidValue;
    *count = device_count();
    return cudaSuccess;
  });
}

CB_DRIVER CUresult cuDeviceGetName(char* name, int size, CUdevice device) {
  return about_device(name, device, [&](const cb::sim::DeviceInfo& info) {
    if (size <= 0) return cudaErrorInvalidValue;
    strncpy(name, info.name, size - 1);
    name[size - 1] = '\0';
    return cudaSuccess;
  });
}

CB_DRIVER CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) { return get_uuid(uuid, device); }
CB_DRIVER CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  return get_uuid(uuid, device);
}

CB_DRIVER CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  return about_device(bytes, device, [&](const cb::sim::DeviceInfo& info) {
    *bytes = info.global_memory_bytes;
    return cudaSuccess;
  });
}

CB_DRIVER CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return about_device(value, device, [&](const cb::sim::DeviceInfo& info) {
    return device_attribute(info, attribute, value) ? cudaSuccess : cudaErrorInvalidValue;
  });
}

CB_DRIVER CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  return about_device(major, device, [&](const cb::sim::DeviceInfo& info) {
    if (minor == nullptr) return cudaErrorInvalidValue;
    *major = static_cast<int>(info.compute_major);
    *minor = static_cast<int>(info.compute_minor);
    return cudaSuccess;
  });
}

CB_DRIVER CUresult cuDeviceGetPCIBusId(char* text, int size, CUdevice device) {
  return about_device(text, device, [&](const cb::sim::DeviceInfo& info) {
    if (size <= 0 || static_cast<size_t>(size) <= strlen(info.pci_bus_id)) {
      return cudaErrorInvalidValue;
    }
    strcpy(text, info.pci_bus_id);
    return cudaSuccess;
  });
}

CB_DRIVER CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* text) {
  return driver_call(
      [&] { return device == nullptr ? cudaErrorInvalidValue : find_by_pci_bus_id(device, text); });
}

CB_DRIVER CUresult cuDeviceGetExecAffinitySupport(int* supported, CUexecAffinityType type,
                                                  CUdevice device) {
  return about_device(supported, device, [&](const cb::sim::DeviceInfo&) {
    if (type < 0 || type >= CU_EXEC_AFFINITY_TYPE_MAX) return cudaErrorInvalidValue;
    *supported = 0;  // it needs the multi-process service
    return cudaSuccess;
  });
}

CB_DRIVER CUresult cuDeviceCanAccessPeer(int* can_access, CUdevice device, CUdevice peer) {
  return about_device(can_access, device, [&](const cb::sim::DeviceInfo&) {
    if (!is_device(peer)) return cudaErrorInvalidDevice;
    *can_access = can_access_peer(device, peer);
    return cudaSuccess;
  });
}

CB_DRIVER CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute,
                                           CUdevice device, CUdevice peer) {
  return about_device(value, device, [&](const cb::sim::DeviceInfo&) {
    return peer_attribute(value, attribute, device, peer);
  });
}
