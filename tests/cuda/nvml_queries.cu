// NVML, loaded as communication libraries load it, agrees with the runtime about the devices.

#include <dlfcn.h>

#include <cstdint>
#include <cstring>

#include "check.h"

using Device = struct DeviceObject*;
static void* library;

/// Calls a function of the library by its name; -1 when it has none of that name.
template <class... Args>
static int call(const char* name, Args... args) {
  auto* function = reinterpret_cast<int (*)(Args...)>(dlsym(library, name));
  return function == nullptr ? -1 : function(args...);
}

struct PciInfo {
  char legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};

static void check_device(int index) {
  cudaDeviceProp properties;
  REQUIRE_OK(cudaGetDeviceProperties(&properties, index));
  Device device = nullptr, same = nullptr;
  char bus_id[32] = "", name[96] = "", uuid[96] = "";
  EXPECT_OK(cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, index));
  EXPECT_EQUAL(call("nvmlDeviceGetHandleByPciBusId_v2", bus_id, &device), 0);
  PciInfo pci;
  EXPECT_EQUAL(call("nvmlDeviceGetPciInfo_v3", device, &pci), 0);
  EXPECT_EQUAL(pci.bus, properties.pciBusID);
  EXPECT_EQUAL(pci.domain, properties.pciDomainID);
  EXPECT_EQUAL(call("nvmlDeviceGetHandleByPciBusId_v2", pci.bus_id, &same), 0);
  EXPECT(same == device);
  EXPECT_EQUAL(call("nvmlDeviceGetName", device, name, unsigned{sizeof name}), 0);
  EXPECT(strcmp(name, properties.name) == 0);
  EXPECT_EQUAL(call("nvmlDeviceGetUUID", device, uuid, unsigned{sizeof uuid}), 0);
  EXPECT(strncmp(uuid, "GPU-", 4) == 0 && strlen(uuid) == 40);
  unsigned first_byte = 0;
  sscanf(uuid + 4, "%2x", &first_byte);
  EXPECT_EQUAL(first_byte, static_cast<unsigned char>(properties.uuid.bytes[0]));
  EXPECT_EQUAL(call("nvmlDeviceGetHandleByUUID", static_cast<const char*>(uuid), &same), 0);
  EXPECT(same == device);
  int major = 0, minor = 0;
  EXPECT_EQUAL(call("nvmlDeviceGetCudaComputeCapability", device, &major, &minor), 0);
  EXPECT_EQUAL(major * 10 + minor, properties.major * 10 + properties.minor);
  unsigned long long memory[3] = {};
  EXPECT_EQUAL(call("nvmlDeviceGetMemoryInfo", device, memory), 0);
  EXPECT(memory[0] >= memory[1] && memory[1] > 0 && memory[0] >= memory[2]);
  unsigned generation = 0, width = 0, clock = 0;
  EXPECT_EQUAL(call("nvmlDeviceGetMaxPcieLinkGeneration", device, &generation), 0);
  EXPECT_EQUAL(call("nvmlDeviceGetMaxPcieLinkWidth", device, &width), 0);
  EXPECT_EQUAL(call("nvmlDeviceGetMaxClockInfo", device, 1U, &clock), 0);
  EXPECT(generation >= 3 && width >= 4 && clock > 500);
  EXPECT_EQUAL(call("nvmlDeviceGetName", device, name, 2U), 7);  // insufficient size
}

/// Peers: what NVML says of reading and writing is what the runtime does.
static void check_links(int count) {
  Device first = nullptr, second = nullptr;
  EXPECT_EQUAL(call("nvmlDeviceGetHandleByIndex_v2", 0U, &first), 0);
  unsigned active = 0, type = 99;
  if (call("nvmlDeviceGetNvLinkState", first, 0U, &active) == 0 && active == 1) {
    PciInfo remote;
    unsigned version = 0;
    EXPECT_EQUAL(call("nvmlDeviceGetNvLinkRemotePciInfo_v2", first, 0U, &remote), 0);
    EXPECT_EQUAL(call("nvmlDeviceGetNvLinkRemoteDeviceType", first, 0U, &type), 0);
    EXPECT(type <= 2);
    EXPECT_EQUAL(call("nvmlDeviceGetNvLinkVersion", first, 0U, &version), 0);
    EXPECT(version > 0);
  }
  if (count < 2) return;
  EXPECT_EQUAL(call("nvmlDeviceGetHandleByIndex_v2", 1U, &second), 0);
  unsigned status = 99, level = 99;
  int can_access = -1;
  EXPECT_EQUAL(call("nvmlDeviceGetP2PStatus", first, second, 0U, &status), 0);
  EXPECT_OK(cudaDeviceCanAccessPeer(&can_access, 0, 1));
  EXPECT_EQUAL(status == 0, can_access);
  EXPECT_EQUAL(call("nvmlDeviceGetTopologyCommonAncestor", first, second, &level), 0);
  EXPECT(level > 0 && level <= 50);
}

int main() {
  library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  if (library == nullptr) return 77;
  unsigned count = 0;
  EXPECT_EQUAL(call("nvmlDeviceGetCount_v2", &count), 1);  // uninitialised
  if (call("nvmlInit_v2") != 0) return 77;
  int devices = 0;
  REQUIRE_OK(cudaGetDeviceCount(&devices));
  EXPECT_EQUAL(call("nvmlDeviceGetCount_v2", &count), 0);
  EXPECT_EQUAL(count, devices);
  int version = 0, driver_version = 0;
  EXPECT_EQUAL(call("nvmlSystemGetCudaDriverVersion_v2", &version), 0);
  EXPECT_OK(cudaDriverGetVersion(&driver_version));
  EXPECT_EQUAL(version, driver_version);
  check_device(0);
  check_device(devices - 1);
  check_links(devices);
  Device none = nullptr;
  EXPECT_EQUAL(call("nvmlDeviceGetHandleByIndex_v2", 1000U, &none), 2);
  auto* text = reinterpret_cast<const char* (*)(int)>(dlsym(library, "nvmlErrorString"));
  EXPECT(text != nullptr && strlen(text(2)) > 0);
  EXPECT_EQUAL(call("nvmlShutdown"), 0);
  EXPECT_EQUAL(call("nvmlShutdown"), 1);
  return failures();
}
