// What libnvidia-ml.so.1 asks of this library, which holds the connection.

#include "simulator/shims/client/call.h"
#include "simulator/shims/client/errors.h"
#include "simulator/shims/client/process.h"

using namespace cb::sim::client;

#define CB_EXPORT extern "C" __attribute__((visibility("default")))

/// The devices of the node; none without a connection.
CB_EXPORT const cb::sim::DeviceInfo* commbench_sim_devices(int* count) {
  *count = link_error() == cudaSuccess ? device_count() : 0;
  return process.devices;
}

CB_EXPORT bool commbench_sim_memory(int device, uint64_t* free_bytes, uint64_t* total_bytes) {
  Call call(cb::sim::Op::kMemInfo);
  if (call.args(device).on(device).wait() != cudaSuccess) return false;
  *free_bytes = call.result(0);
  *total_bytes = call.result(1);
  return true;
}

CB_EXPORT void commbench_sim_report_unsupported(const char* name, bool* said) {
  report_unsupported(name, *said);
}
