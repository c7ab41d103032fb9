#pragma once

// What every file of driver API functions needs. They are compiled into libcudart.so.13, where
// cudaGetDriverEntryPoint finds them; libcuda.so.1 only forwards. `CB_DRIVER` at the start of a
// line marks an implemented function for gen/generate_tables.py.

#include <cuda.h>

#include "simulator/shims/client/errors.h"
#include "simulator/shims/client/process.h"
#include "simulator/shims/client/thread.h"

#define CB_DRIVER extern "C"

namespace cb::sim::client {

/// The driver's code for an error of ours. Most numbers are the same; the runtime has a few of its
/// own for arguments.
CUresult to_result(cudaError_t error);

/// CUDA_ERROR_NOT_INITIALIZED before cuInit, which the runtime API also does.
CUresult driver_ready();
/// `driver_ready`, then whether a context is current and whole.
CUresult context_ready();

/// The body of a function that needs no context.
template <class Body>
CUresult driver_call(Body body) {
  CUresult result = driver_ready();
  return result == CUDA_SUCCESS ? to_result(body()) : result;
}

/// The body of a function that works in the current context.
template <class Body>
CUresult context_call(Body body) {
  CUresult result = context_ready();
  return result == CUDA_SUCCESS ? to_result(body()) : result;
}

/// The handle of a device's primary context, the only kind there is.
CUcontext context_of(int device);
/// The device of a context handle, -1 for anything else.
int device_of(CUcontext context);

inline void* to_pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

}  // namespace cb::sim::client
