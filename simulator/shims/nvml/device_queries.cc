// What a device is. Values that no profile has are those of every H100 SXM5 and A100 SXM4.

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstring>

#include "simulator/protocol/protocol.h"
#include "simulator/shims/nvml/devices.h"

using namespace cb::sim::nvml;
using cb::sim::DeviceInfo;

extern "C" bool commbench_sim_memory(int device, uint64_t* free_bytes, uint64_t* total_bytes);

namespace {

bool is_hopper(const DeviceInfo& info) { return info.compute_major >= 9; }

unsigned attribute(int index, cudaDeviceAttr wanted) {
  int value = 0;
  cudaDeviceGetAttribute(&value, wanted, index);
  return static_cast<unsigned>(value);
}

template <class Info>
void fill_pci(const DeviceInfo& device, int index, Info* info) {
  memset(info, 0, sizeof *info);
  unsigned function = 0;
  sscanf(device.pci_bus_id, "%x:%x:%x.%x", &info->domain, &info->bus, &info->device, &function);
  snprintf(info->bus_id_legacy, sizeof info->bus_id_legacy, "%04X:%02X:%02X.0",
           info->domain & 0xffff, info->bus & 0xff, info->device & 0xff);
  info->pci_device_id = attribute(index, cudaDevAttrGpuPciDeviceId);
  info->pci_subsystem_id = attribute(index, cudaDevAttrGpuPciSubsystemId);
}

enum ClockType : unsigned { kGraphicsClock, kSmClock, kMemoryClock };

/// MHz. The simulated devices always run at their highest clocks.
Return clock_of(Device* handle, unsigned type, unsigned* mhz) {
  return about(handle, mhz, [&](const DeviceInfo& info, int) {
    static bool said;
    if (type > kMemoryClock) return refuse("the video clock", said);
    *mhz = (type == kMemoryClock ? info.memory_clock_khz : info.clock_khz) / 1000;
    return kSuccess;
  });
}

Return constant(Device* handle, unsigned* place, unsigned value) {
  return about(handle, place, [&](const DeviceInfo&, int) {
    *place = value;
    return kSuccess;
  });
}

Return pcie_generation(Device* handle, unsigned* generation) {
  return about(handle, generation, [&](const DeviceInfo& info, int) {
    *generation = is_hopper(info) ? 5 : 4;
    return kSuccess;
  });
}

}  // namespace

CB_NVML Return nvmlDeviceGetName(Device* handle, char* name, unsigned bytes) {
  return about(handle, name,
               [&](const DeviceInfo& info, int) { return copy_text(info.name, name, bytes); });
}

CB_NVML Return nvmlDeviceGetIndex(Device* handle, unsigned* index) {
  return about(handle, index, [&](const DeviceInfo&, int at) {
    *index = static_cast<unsigned>(at);
    return kSuccess;
  });
}
CB_NVML Return nvmlDeviceGetMinorNumber(Device* handle, unsigned* minor) {
  return nvmlDeviceGetIndex(handle, minor);
}

CB_NVML Return nvmlDeviceGetPciInfo_v3(Device* handle, PciInfo* info) {
  return about(handle, info, [&](const DeviceInfo& device, int index) {
    fill_pci(device, index, info);
    snprintf(info->bus_id, sizeof info->bus_id, "%08X:%02X:%02X.0", info->domain, info->bus & 0xff,
             info->device & 0xff);
    return kSuccess;
  });
}
CB_NVML Return nvmlDeviceGetPciInfo_v2(Device* handle, PciInfoV2* info) {
  return about(handle, info, [&](const DeviceInfo& device, int index) {
    fill_pci(device, index, info);
    return kSuccess;
  });
}
CB_NVML Return nvmlDeviceGetPciInfo(Device* handle, PciInfoV2* info) {
  return nvmlDeviceGetPciInfo_v2(handle, info);
}

CB_NVML Return nvmlDeviceGetMemoryInfo(Device* handle, Memory* memory) {
  return about(handle, memory, [&](const DeviceInfo&, int index) {
    if (!commbench_sim_memory(index, &memory->free, &memory->total)) return kUnknown;
    memory->used = memory->total - memory->free;
    return kSuccess;
  });
}
CB_NVML Return nvmlDeviceGetMemoryInfo_v2(Device* handle, MemoryV2* memory) {
  return about(handle, memory, [&](const DeviceInfo&, int index) {
    if (memory->version != kMemoryV2) return kArgumentVersionMismatch;
    if (!commbench_sim_memory(index, &memory->free, &memory->total)) return kUnknown;
    memory->reserved = 0;
    memory->used = memory->total - memory->free;
    return kSuccess;
  });
}

CB_NVML Return nvmlDeviceGetCudaComputeCapability(Device* handle, int* major, int* minor) {
  return about(handle, major, [&](const DeviceInfo& info, int) {
    if (minor == nullptr) return kInvalidArgument;
    *major = static_cast<int>(info.compute_major);
    *minor = static_cast<int>(info.compute_minor);
    return kSuccess;
  });
}

CB_NVML Return nvmlDeviceGetArchitecture(Device* handle, unsigned* architecture) {
  return about(handle, architecture, [&](const DeviceInfo& info, int) {
    constexpr unsigned kAmpere = 7, kHopper = 9;
    *architecture = is_hopper(info) ? kHopper : kAmpere;
    return kSuccess;
  });
}
CB_NVML Return nvmlDeviceGetBrand(Device* handle, unsigned* brand) {
  constexpr unsigned kBrandNvidia = 14;
  return constant(handle, brand, kBrandNvidia);
}

CB_NVML Return nvmlDeviceGetNumGpuCores(Device* handle, unsigned* cores) {
  return about(handle, cores, [&](const DeviceInfo& info, int) {
    // CUDA C++ Programming Guide, "Arithmetic Instructions": fp32 results per cycle and SM.
    *cores = info.num_sms * (is_hopper(info) ? 128 : 64);
    return kSuccess;
  });
}
CB_NVML Return nvmlDeviceGetMemoryBusWidth(Device* handle, unsigned* bits) {
  return about(handle, bits, [&](const DeviceInfo& info, int) {
    *bits = info.memory_bus_bits;
    return kSuccess;
  });
}

CB_NVML Return nvmlDeviceGetClockInfo(Device* handle, unsigned type, unsigned* mhz) {
  return clock_of(handle, type, mhz);
}
CB_NVML Return nvmlDeviceGetMaxClockInfo(Device* handle, unsigned type, unsigned* mhz) {
  return clock_of(handle, type, mhz);
}

CB_NVML Return nvmlDeviceGetMaxPcieLinkGeneration(Device* handle, unsigned* generation) {
  return pcie_generation(handle, generation);
}
CB_NVML Return nvmlDeviceGetCurrPcieLinkGeneration(Device* handle, unsigned* generation) {
  return pcie_generation(handle, generation);
}
CB_NVML Return nvmlDeviceGetMaxPcieLinkWidth(Device* handle, unsigned* width) {
  return constant(handle, width, 16);
}
CB_NVML Return nvmlDeviceGetCurrPcieLinkWidth(Device* handle, unsigned* width) {
  return constant(handle, width, 16);
}

CB_NVML Return nvmlDeviceGetComputeMode(Device* handle, unsigned* mode) {
  return constant(handle, mode, 0);
}
CB_NVML Return nvmlDeviceGetPersistenceMode(Device* handle, unsigned* mode) {
  return constant(handle, mode, 1);
}
CB_NVML Return nvmlDeviceGetEccMode(Device* handle, unsigned* current, unsigned* pending) {
  return pending == nullptr ? kInvalidArgument : (*pending = 1, constant(handle, current, 1));
}
CB_NVML Return nvmlDeviceGetMigMode(Device* handle, unsigned* current, unsigned* pending) {
  return pending == nullptr ? kInvalidArgument : (*pending = 0, constant(handle, current, 0));
}
