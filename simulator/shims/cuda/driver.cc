#include "simulator/shims/cuda/driver.h"

namespace cb::sim::client {
namespace {

char context_objects[kMaxDevices];

}  // namespace

CUresult to_result(cudaError_t error) {
  switch (error) {
    case cudaErrorInvalidConfiguration:
    case cudaErrorInvalidPitchValue:
    case cudaErrorInvalidMemcpyDirection:
    case cudaErrorInvalidHostPointer:
    case cudaErrorInvalidDevicePointer:
      return CUDA_ERROR_INVALID_VALUE;
    case cudaErrorInvalidSymbol:
    case cudaErrorInvalidDeviceFunction:
      return CUDA_ERROR_NOT_FOUND;
    case cudaErrorCudartUnloading:
      return CUDA_ERROR_DEINITIALIZED;
    default:
      return static_cast<CUresult>(error);
  }
}

CUresult driver_ready() {
  if (!process.driver_initialized.load(std::memory_order_relaxed)) {
    return CUDA_ERROR_NOT_INITIALIZED;
  }
  return to_result(link_error());
}

CUresult context_ready() {
  CUresult result = driver_ready();
  if (result != CUDA_SUCCESS) return result;
  Thread& thread = this_thread();
  if (!thread.has_context()) return CUDA_ERROR_INVALID_CONTEXT;
  return static_cast<CUresult>(process.sticky[thread.device()].load(std::memory_order_relaxed));
}

CUcontext context_of(int device) { return reinterpret_cast<CUcontext>(&context_objects[device]); }

int device_of(CUcontext context) {
  auto* object = reinterpret_cast<char*>(context);
  if (object < context_objects || object >= context_objects + device_count()) return -1;
  return static_cast<int>(object - context_objects);
}

}  // namespace cb::sim::client
