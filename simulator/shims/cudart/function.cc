#include "simulator/shims/client/functions.h"

#include "simulator/shims/client/devices.h"
#include "simulator/shims/cudart/api.h"
#include "simulator/shims/cudart/launch_attributes.h"
#include "simulator/shims/cudart/registration.h"

using namespace cb::sim::client;

namespace {

/// Finds and loads a kernel, then gives it to `body`.
template <class Body>
cudaError_t with_kernel(const void* func, Body body) {
  return api([&] {
    Kernel* kernel = find_function(func);
    if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
    cudaError_t error = load_kernel(kernel);
    return error == cudaSuccess ? body(*kernel) : error;
  });
}

cudaError_t read_config(const cudaLaunchConfig_t* config, LaunchRequest* request) {
  if (config == nullptr) return cudaErrorInvalidValue;
  request->grid = config->gridDim;
  request->block = config->blockDim;
  request->dynamic_shared_bytes = config->dynamicSmemBytes;
  return apply_attributes(config->attrs, config->numAttrs, request);
}

}  // namespace

CB_API cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* func) {
  return with_kernel(func, [&](Kernel& kernel) {
    if (attributes == nullptr) return cudaErrorInvalidValue;
    *attributes = function_attributes(kernel, this_thread().device());
    return cudaSuccess;
  });
}

CB_API cudaError_t cudaFuncSetAttribute(const void* func, cudaFuncAttribute attribute, int value) {
  return with_kernel(func, [&](Kernel& kernel) {
    return set_function_attribute(kernel, this_thread().device(), attribute, value);
  });
}

CB_API cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t handle, cudaFuncAttribute attribute,
                                                   int value, int device) {
  return with_kernel(handle, [&](Kernel& kernel) {
    if (!is_device(device)) return cudaErrorInvalidDevice;
    return set_function_attribute(kernel, device, attribute, value);
  });
}

CB_API cudaError_t cudaFuncSetCacheConfig(const void* func, cudaFuncCache config) {
  return with_kernel(func, [&](Kernel&) { return check_cache_config(config); });
}

CB_API cudaError_t cudaFuncSetSharedMemConfig(const void* func, cudaSharedMemConfig config) {
  return with_kernel(func, [&](Kernel&) {
    bool known = config >= cudaSharedMemBankSizeDefault && config <= cudaSharedMemBankSizeEightByte;
    return known ? cudaSuccess : cudaErrorInvalidValue;
  });
}

CB_API cudaError_t cudaFuncGetName(const char** name, const void* func) {
  return api([&] {
    Kernel* kernel = find_function(func);
    if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
    if (name == nullptr) return cudaErrorInvalidValue;
    *name = kernel->name;
    return cudaSuccess;
  });
}

CB_API cudaError_t cudaFuncGetParamInfo(const void* func, size_t index, size_t* offset,
                                        size_t* bytes) {
  return with_kernel(func,
                     [&](Kernel& kernel) { return parameter_info(kernel, index, offset, bytes); });
}

CB_API cudaError_t cudaGetFuncBySymbol(cudaFunction_t* function, const void* symbol) {
  return api([&] {
    if (function == nullptr) return cudaErrorInvalidValue;
    void* handle = find_function_handle(symbol);
    if (handle == nullptr) return cudaErrorInvalidDeviceFunction;
    *function = static_cast<cudaFunction_t>(handle);
    return cudaSuccess;
  });
}

CB_API cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* func) {
  return api([&] {
    if (kernel == nullptr) return cudaErrorInvalidValue;
    void* handle = find_function_handle(func);
    if (handle == nullptr) return cudaErrorInvalidDeviceFunction;
    *kernel = static_cast<cudaKernel_t>(handle);
    return cudaSuccess;
  });
}

CB_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* num_blocks, const void* func, int block_size, size_t dynamic_shared_bytes,
    unsigned flags) {
  return with_kernel(func, [&](Kernel& kernel) {
    if ((flags & ~unsigned{cudaOccupancyDisableCachingOverride}) != 0) {
      return cudaErrorInvalidValue;
    }
    return active_blocks(kernel, block_size, dynamic_shared_bytes, num_blocks);
  });
}

CB_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* num_blocks, const void* func,
                                                                 int block_size,
                                                                 size_t dynamic_shared_bytes) {
  return with_kernel(func, [&](Kernel& kernel) {
    return active_blocks(kernel, block_size, dynamic_shared_bytes, num_blocks);
  });
}

CB_API cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* func,
                                                  const cudaLaunchConfig_t* config) {
  return with_kernel(func, [&](Kernel& kernel) {
    LaunchRequest request;
    cudaError_t error = read_config(config, &request);
    return error == cudaSuccess ? active_clusters(kernel, request, clusters) : error;
  });
}

CB_API cudaError_t cudaOccupancyMaxPotentialClusterSize(int* blocks, const void* func,
                                                        const cudaLaunchConfig_t* config) {
  return with_kernel(func, [&](Kernel& kernel) {
    LaunchRequest request;
    cudaError_t error = read_config(config, &request);
    return error == cudaSuccess ? largest_cluster(kernel, request, blocks) : error;
  });
}

CB_API cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* func,
                                                             int num_blocks, int block_size) {
  return with_kernel(func, [&](Kernel& kernel) {
    return available_shared_bytes(kernel, num_blocks, block_size, bytes);
  });
}
