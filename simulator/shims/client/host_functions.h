#pragma once

// Host functions and callbacks in streams. The simulator says when the turn of one has come; a
// thread of this process, started with the first of them, runs them one after the other.

#include <cuda_runtime_api.h>

#include <cstdint>

#include "simulator/shims/client/streams.h"

namespace cb::sim::client {

/// What runs on that thread. `callback` gets `stream` and the context's error, `function` neither.
struct HostFunction {
  cudaHostFn_t function = nullptr;
  void (*callback)(void* stream, int error, void* data) = nullptr;
  void* stream = nullptr;
  void* data = nullptr;
};

/// Sends `function` to a stream. Part of a graph's launch: `flags` as of other work.
cudaError_t send_host_function(uint64_t stream, int device, const HostFunction& function,
                               uint16_t flags);

/// cudaLaunchHostFunc.
cudaError_t launch_host_function(cudaStream_t stream, cudaHostFn_t function, void* data,
                                 DefaultStream null_means);
/// cudaStreamAddCallback; the callback's own types are those of the API that it was given to.
cudaError_t add_callback(void* stream, void (*callback)(void* stream, int error, void* data),
                         void* data, unsigned flags, DefaultStream null_means);

}  // namespace cb::sim::client
