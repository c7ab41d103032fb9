#pragma once

// cuLink*: PTX and fatbins are collected, and linked by the simulator. The result is an image that
// every loading function takes.

#include <cuda_runtime_api.h>

#include <cstddef>

#include "simulator/shims/client/jit.h"

namespace cb::sim::client {

cudaError_t create_link(void** handle, const JitOptions& options);
/// `type` is a CUjitInputType. PTX with an error in it fails here, at once.
cudaError_t add_link_input(void* handle, int type, const void* data, size_t bytes,
                           const JitOptions& options);
cudaError_t add_link_file(void* handle, int type, const char* path, const JitOptions& options);
/// The image belongs to the link and goes with it.
cudaError_t complete_link(void* handle, void** image, size_t* bytes);
cudaError_t destroy_link(void* handle);

}  // namespace cb::sim::client
