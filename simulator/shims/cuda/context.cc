// Contexts. Each device has its primary context, which the runtime API uses too. Those that
// cuCtxCreate makes share its address space here, where hardware separates them: a program that is
// right there is right here.

#include <atomic>

#include "simulator/shims/client/devices.h"
#include "simulator/shims/client/peers.h"
#include "simulator/shims/client/streams.h"
#include "simulator/shims/cuda/driver.h"

using namespace cb::sim::client;

namespace {

std::atomic<int> retained[kMaxDevices];

/// Puts "no context" or a context on top of the thread's stack.
void set_current(int context) { this_thread().set_context(context); }

CUresult create(CUcontext* handle, unsigned flags, CUdevice device) {
  return driver_call([&] {
    if (handle == nullptr) return cudaErrorInvalidValue;
    if (!is_device(device)) return cudaErrorInvalidDevice;
    constexpr unsigned kDumps = CU_CTX_COREDUMP_ENABLE | CU_CTX_USER_COREDUMP_ENABLE;
    if ((flags & kDumps) != 0) return CB_REFUSE("core dumps of contexts");
    cudaError_t error = check_flags(flags);
    if (error != cudaSuccess) return error;
    Thread& thread = this_thread();
    if (thread.num_contexts == Thread::kMaxContexts) return cudaErrorMemoryAllocation;
    int context = create_context(device, flags);
    if (context < 0) return cudaErrorMemoryAllocation;
    thread.contexts[thread.num_contexts++] = context;
    *handle = context_of(context);
    return cudaSuccess;
  });
}

/// What has been made in a context goes with it; as all contexts of a device share what they make,
/// that is when nobody else uses the device any more.
cudaError_t release_device(int device) {
  if (num_created_contexts(device) > 0 || retained[device].load() > 0) return cudaSuccess;
  Thread& thread = this_thread();
  int current = thread.context();
  set_current(device);
  cudaError_t error = link_error();
  if (error == cudaSuccess) error = reset_device();
  set_current(current);
  return error;
}

cudaError_t synchronize(int device) {
  Thread& thread = this_thread();
  int current = thread.context();
  set_current(device);
  cudaError_t error = begin();
  if (error == cudaSuccess) error = synchronize_device();
  set_current(current);
  return error;
}

}  // namespace

CB_DRIVER CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return driver_call([&] {
    if (context == nullptr) return cudaErrorInvalidValue;
    if (!is_device(device)) return cudaErrorInvalidDevice;
    retained[device].fetch_add(1);
    *context = context_of(device);
    return cudaSuccess;
  });
}

CB_DRIVER CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return driver_call([&] {
    if (!is_device(device)) return cudaErrorInvalidDevice;
    if (retained[device].load() == 0) return cudaErrorDeviceUninitialized;
    retained[device].fetch_sub(1);
    return cudaSuccess;
  });
}

CB_DRIVER CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  return driver_call([&] {
    if (!is_device(device)) return cudaErrorInvalidDevice;
    if (flags == nullptr || active == nullptr) return cudaErrorInvalidValue;
    *flags = get_flags(device);
    *active = retained[device].load() > 0 || this_thread().has_context();
    return cudaSuccess;
  });
}

CB_DRIVER CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {
  return driver_call(
      [&] { return is_device(device) ? set_flags(device, flags) : cudaErrorInvalidDevice; });
}

CB_DRIVER CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return driver_call([&] {
    if (!is_device(device)) return cudaErrorInvalidDevice;
    Thread& thread = this_thread();
    int current = thread.context();
    set_current(device);
    cudaError_t error = reset_device();
    set_current(current);
    return error;
  });
}

CB_DRIVER CUresult cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device) {
  return create(context, flags, device);
}
CB_DRIVER CUresult cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam*, int num_params,
                                  unsigned flags, CUdevice device) {
  if (num_params != 0) return static_cast<CUresult>(CB_REFUSE("CUexecAffinityParam"));
  return create(context, flags, device);
}
CB_DRIVER CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* params, unsigned flags,
                                  CUdevice device) {
  if (params != nullptr && params->numExecAffinityParams != 0) {
    return static_cast<CUresult>(CB_REFUSE("CUexecAffinityParam"));
  }
  if (params != nullptr && params->cigParams != nullptr) {
    return static_cast<CUresult>(CB_REFUSE("CUctxCigParam"));
  }
  return create(context, flags, device);
}

CB_DRIVER CUresult cuCtxDestroy_v2(CUcontext handle) {
  return driver_call([&] {
    int context = context_from(handle);
    if (!destroy_context(context)) return cudaErrorDeviceUninitialized;
    Thread& thread = this_thread();
    if (thread.context() == context) --thread.num_contexts;
    return release_device(context % kMaxDevices);
  });
}

CB_DRIVER CUresult cuCtxGetCurrent(CUcontext* context) {
  return driver_call([&] {
    if (context == nullptr) return cudaErrorInvalidValue;
    Thread& thread = this_thread();
    *context = thread.has_context() ? context_of(thread.context()) : nullptr;
    return cudaSuccess;
  });
}

CB_DRIVER CUresult cuCtxSetCurrent(CUcontext handle) {
  return driver_call([&] {
    int context = context_from(handle);
    if (handle != nullptr && context < 0) return cudaErrorDeviceUninitialized;
    set_current(context);
    return cudaSuccess;
  });
}

CB_DRIVER CUresult cuCtxPushCurrent_v2(CUcontext handle) {
  return driver_call([&] {
    Thread& thread = this_thread();
    int context = context_from(handle);
    if (context < 0) return cudaErrorDeviceUninitialized;
    if (thread.num_contexts == Thread::kMaxContexts) return cudaErrorMemoryAllocation;
    thread.contexts[thread.num_contexts++] = context;
    return cudaSuccess;
  });
}

CB_DRIVER CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  return driver_call([&] {
    Thread& thread = this_thread();
    if (!thread.has_context()) return cudaErrorDeviceUninitialized;
    int popped = thread.contexts[--thread.num_contexts];
    if (context != nullptr) *context = context_of(popped);
    return cudaSuccess;
  });
}

CB_DRIVER CUresult cuCtxGetDevice(CUdevice* device) {
  return driver_call([&] {
    if (device == nullptr) return cudaErrorInvalidValue;
    if (!this_thread().has_context()) return cudaErrorDeviceUninitialized;
    *device = this_thread().device();
    return cudaSuccess;
  });
}

CB_DRIVER CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext context) {
  if (context == nullptr) return cuCtxGetDevice(device);
  return driver_call([&] {
    if (device == nullptr) return cudaErrorInvalidValue;
    *device = device_of(context);
    return *device < 0 ? cudaErrorDeviceUninitialized : cudaSuccess;
  });
}

CB_DRIVER CUresult cuCtxSynchronize() { return context_call(synchronize_device); }

CB_DRIVER CUresult cuCtxSynchronize_v2(CUcontext context) {
  if (context == nullptr) return cuCtxSynchronize();
  return driver_call([&] {
    int device = device_of(context);
    return device < 0 ? cudaErrorDeviceUninitialized : synchronize(device);
  });
}

CB_DRIVER CUresult cuCtxGetId(CUcontext context, unsigned long long* id) {
  return driver_call([&] {
    int number = context == nullptr ? this_thread().context() : context_from(context);
    if (number < 0) return cudaErrorDeviceUninitialized;
    if (id == nullptr) return cudaErrorInvalidValue;
    *id = static_cast<unsigned long long>(number) + 1;
    return cudaSuccess;
  });
}

CB_DRIVER CUresult cuCtxGetApiVersion(CUcontext context, unsigned* version) {
  return driver_call([&] {
    if (context != nullptr && device_of(context) < 0) return cudaErrorDeviceUninitialized;
    if (version == nullptr) return cudaErrorInvalidValue;
    *version = 3020;  // the ABI since CUDA 3.2, as drivers answer
    return cudaSuccess;
  });
}

CB_DRIVER CUresult cuCtxGetFlags(unsigned* flags) {
  return context_call([&] {
    if (flags == nullptr) return cudaErrorInvalidValue;
    int context = this_thread().context();
    *flags = context < kMaxDevices ? get_flags(context) : created_flags(context) | CU_CTX_MAP_HOST;
    return cudaSuccess;
  });
}

CB_DRIVER CUresult cuCtxSetFlags(unsigned flags) {
  return context_call([&] { return set_flags(this_thread().device(), flags); });
}

CB_DRIVER CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  return context_call([&] { return set_limit(static_cast<cudaLimit>(limit), value); });
}

CB_DRIVER CUresult cuCtxGetLimit(size_t* value, CUlimit limit) {
  return context_call([&] { return get_limit(value, static_cast<cudaLimit>(limit)); });
}

CB_DRIVER CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return context_call([&] {
    if (least != nullptr) *least = kLeastPriority;
    if (greatest != nullptr) *greatest = kGreatestPriority;
    return cudaSuccess;
  });
}

CB_DRIVER CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
  return context_call([&] { return check_cache_config(config); });
}

CB_DRIVER CUresult cuCtxGetCacheConfig(CUfunc_cache* config) {
  return context_call([&] {
    if (config == nullptr) return cudaErrorInvalidValue;
    *config = CU_FUNC_CACHE_PREFER_NONE;
    return cudaSuccess;
  });
}

CB_DRIVER CUresult cuCtxSetSharedMemConfig(CUsharedconfig config) {
  return context_call([&] { return check_shared_config(config); });
}

CB_DRIVER CUresult cuCtxGetSharedMemConfig(CUsharedconfig* config) {
  return context_call([&] {
    if (config == nullptr) return cudaErrorInvalidValue;
    *config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
    return cudaSuccess;
  });
}

CB_DRIVER CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget target,
                                              CUflushGPUDirectRDMAWritesScope scope) {
  return context_call([&] { return flush_rdma_writes(target, scope); });
}

CB_DRIVER CUresult cuCtxResetPersistingL2Cache() {
  return context_call([] { return cudaSuccess; });
}

CB_DRIVER CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  return context_call([&] {
    int device = device_of(peer);
    return device < 0 ? cudaErrorDeviceUninitialized : enable_peer_access(device, flags);
  });
}

CB_DRIVER CUresult cuCtxDisablePeerAccess(CUcontext peer) {
  return context_call([&] {
    int device = device_of(peer);
    return device < 0 ? cudaErrorDeviceUninitialized : disable_peer_access(device);
  });
}
