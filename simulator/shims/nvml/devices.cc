// What NVML needs of the process's connection, which libcudart.so.13 holds.

#include "simulator/shims/nvml/devices.h"

#include <atomic>
#include <cstring>

extern "C" const cb::sim::DeviceInfo* commbench_sim_devices(int* count);
extern "C" void commbench_sim_report_unsupported(const char* name, bool* said);

namespace cb::sim::nvml {
namespace {

std::atomic<int> users{0};
char handles[kMaxDevices];

}  // namespace

Return ready() { return users.load() > 0 ? kSuccess : kUninitialized; }

int device_count() {
  int count = 0;
  commbench_sim_devices(&count);
  return count;
}

Device* handle_of(int index) { return reinterpret_cast<Device*>(&handles[index]); }

int index_of(const Device* handle) {
  auto* place = reinterpret_cast<const char*>(handle);
  bool inside = place >= handles && place < handles + device_count();
  return inside ? static_cast<int>(place - handles) : -1;
}

const DeviceInfo& info_of(int index) {
  int count = 0;
  return commbench_sim_devices(&count)[index];
}

Return copy_text(const char* text, char* place, unsigned bytes) {
  if (place == nullptr) return kInvalidArgument;
  size_t size = strlen(text) + 1;
  if (size > bytes) return kInsufficientSize;
  memcpy(place, text, size);
  return kSuccess;
}

Return refuse(const char* name, bool& said) {
  commbench_sim_report_unsupported(name, &said);
  return kNotSupported;
}

}  // namespace cb::sim::nvml

using namespace cb::sim::nvml;

CB_NVML Return nvmlInitWithFlags(unsigned) {
  if (device_count() == 0) return kDriverNotLoaded;
  users.fetch_add(1);
  return kSuccess;
}
CB_NVML Return nvmlInit_v2() { return nvmlInitWithFlags(0); }
CB_NVML Return nvmlInit() { return nvmlInitWithFlags(0); }

CB_NVML Return nvmlShutdown() {
  int before = users.load();
  while (before > 0 && !users.compare_exchange_weak(before, before - 1)) {
  }
  return before > 0 ? kSuccess : kUninitialized;
}
