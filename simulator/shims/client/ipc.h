#pragma once

// Sharing between processes. A handle holds the daemon's token for the allocation or event; whoever
// knows the token may open it, as on hardware.

#include <cuda_runtime_api.h>

namespace cb::sim::client {

cudaError_t export_memory(cudaIpcMemHandle_t* handle, void* pointer);
cudaError_t import_memory(void** pointer, const cudaIpcMemHandle_t& handle, unsigned flags);
cudaError_t close_memory(void* pointer);

cudaError_t export_event(cudaIpcEventHandle_t* handle, cudaEvent_t event);
cudaError_t import_event(cudaEvent_t* event, const cudaIpcEventHandle_t& handle);

}  // namespace cb::sim::client
