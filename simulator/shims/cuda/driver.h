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

/// The handle of a context as Thread has it: that of a device is its primary one.
CUcontext context_of(int context);
/// The context behind a handle, -1 for anything else.
int context_from(CUcontext handle);
/// The device of a context handle, -1 for anything else.
inline int device_of(CUcontext handle) {
  int context = context_from(handle);
  return context < 0 ? -1 : context % kMaxDevices;
}

/// A further context of the device, as Thread has it; -1 when there are too many.
int create_context(int device, unsigned flags);
/// False when there is no such context, or it is a primary one.
bool destroy_context(int context);
/// How many further contexts the device has.
int num_created_contexts(int device);
/// Of a further context.
unsigned created_flags(int context);

inline void* to_pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

}  // namespace cb::sim::client
