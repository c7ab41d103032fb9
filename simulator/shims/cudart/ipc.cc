#include "simulator/shims/client/ipc.h"

#include "simulator/shims/cudart/api.h"

using namespace cb::sim::client;

CB_API cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* pointer) {
  return api([&] { return export_memory(handle, pointer); });
}

CB_API cudaError_t cudaIpcOpenMemHandle(void** pointer, cudaIpcMemHandle_t handle, unsigned flags) {
  return api([&] { return import_memory(pointer, handle, flags); });
}

CB_API cudaError_t cudaIpcCloseMemHandle(void* pointer) {
  return api([&] { return close_memory(pointer); });
}

CB_API cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  return api([&] { return export_event(handle, event); });
}

CB_API cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  return api([&] { return import_event(event, handle); });
}
