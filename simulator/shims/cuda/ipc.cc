#include "simulator/shims/client/ipc.h"

#include <cstring>

#include "simulator/shims/cuda/driver.h"

using namespace cb::sim::client;

namespace {

/// The driver's handles are the runtime's under other names.
template <class To, class From>
To convert(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

}  // namespace

CB_DRIVER CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
  return context_call([&] {
    return export_memory(reinterpret_cast<cudaIpcMemHandle_t*>(handle), to_pointer(address));
  });
}

CB_DRIVER CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* address, CUipcMemHandle handle,
                                         unsigned flags) {
  return context_call([&] {
    return import_memory(reinterpret_cast<void**>(address), convert<cudaIpcMemHandle_t>(handle),
                         flags);
  });
}

CB_DRIVER CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
  return context_call([&] { return close_memory(to_pointer(address)); });
}

CB_DRIVER CUresult cuIpcGetEventHandle(CUipcEventHandle* handle, CUevent event) {
  return context_call(
      [&] { return export_event(reinterpret_cast<cudaIpcEventHandle_t*>(handle), event); });
}

CB_DRIVER CUresult cuIpcOpenEventHandle(CUevent* event, CUipcEventHandle handle) {
  return context_call([&] { return import_event(event, convert<cudaIpcEventHandle_t>(handle)); });
}

// There is no profiler to start or stop, as on hardware when none is attached.
CB_DRIVER CUresult cuProfilerStart() {
  return context_call([] { return cudaSuccess; });
}

CB_DRIVER CUresult cuProfilerStop() {
  return context_call([] { return cudaSuccess; });
}
