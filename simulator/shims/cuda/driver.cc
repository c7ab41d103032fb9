#include "simulator/shims/cuda/driver.h"

#include "simulator/shims/client/mutex.h"

namespace cb::sim::client {
namespace {

/// Contexts by number: primary ones first, then those of cuCtxCreate. The bytes are handles.
constexpr int kMaxContexts = 64 * kMaxDevices;
char context_objects[kMaxContexts];

struct Created {
  bool is_live;
  unsigned flags;
};
Mutex created_mutex;
Created created[kMaxContexts];

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
  if (this_thread().in_host_function) return CUDA_ERROR_NOT_PERMITTED;
  return to_result(link_error());
}

CUresult context_ready() {
  CUresult result = driver_ready();
  if (result != CUDA_SUCCESS) return result;
  Thread& thread = this_thread();
  if (!thread.has_context()) return CUDA_ERROR_INVALID_CONTEXT;
  // Another thread may have destroyed it.
  int context = thread.context();
  if (context >= kMaxDevices && context_from(context_of(context)) < 0) {
    return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  }
  return static_cast<CUresult>(process.sticky[thread.device()].load(std::memory_order_relaxed));
}

CUcontext context_of(int context) { return reinterpret_cast<CUcontext>(&context_objects[context]); }

int context_from(CUcontext handle) {
  auto* object = reinterpret_cast<char*>(handle);
  if (object < context_objects || object >= context_objects + kMaxContexts) return -1;
  int context = static_cast<int>(object - context_objects);
  if (!is_device(context % kMaxDevices)) return -1;
  Lock lock(created_mutex);
  return context < kMaxDevices || created[context].is_live ? context : -1;
}

int create_context(int device, unsigned flags) {
  Lock lock(created_mutex);
  for (int context = device + kMaxDevices; context < kMaxContexts; context += kMaxDevices) {
    if (created[context].is_live) continue;
    created[context] = {true, flags};
    return context;
  }
  return -1;
}

bool destroy_context(int context) {
  Lock lock(created_mutex);
  if (context < kMaxDevices || !created[context].is_live) return false;
  created[context].is_live = false;
  return true;
}

int num_created_contexts(int device) {
  Lock lock(created_mutex);
  int count = 0;
  for (int context = device + kMaxDevices; context < kMaxContexts; context += kMaxDevices) {
    count += created[context].is_live ? 1 : 0;
  }
  return count;
}

unsigned created_flags(int context) {
  Lock lock(created_mutex);
  return created[context].flags;
}

}  // namespace cb::sim::client
