// Kernels and functions, which are the same handle here, and their launches.

#include "simulator/shims/client/functions.h"

#include "simulator/shims/client/devices.h"
#include "simulator/shims/client/launch.h"
#include "simulator/shims/client/libraries.h"
#include "simulator/shims/cuda/driver.h"
#include "simulator/shims/cudart/launch_attributes.h"

using namespace cb::sim::client;

namespace {

template <class Handle, class Body>
CUresult with_kernel(Handle handle, Body body) {
  return context_call([&] {
    Kernel* kernel = find_kernel(handle);
    if (kernel == nullptr) return cudaErrorInvalidResourceHandle;
    cudaError_t error = load_kernel(kernel);
    return error == cudaSuccess ? body(*kernel) : error;
  });
}

cudaError_t attribute_of(const Kernel& kernel, int device, int attribute, int* value) {
  if (value == nullptr) return cudaErrorInvalidValue;
  cudaFuncAttributes all = function_attributes(kernel, device);
  const int values[CU_FUNC_ATTRIBUTE_MAX] = {
      all.maxThreadsPerBlock,
      static_cast<int>(all.sharedSizeBytes),
      static_cast<int>(all.constSizeBytes),
      static_cast<int>(all.localSizeBytes),
      all.numRegs,
      all.ptxVersion,
      all.binaryVersion,
      all.cacheModeCA,
      all.maxDynamicSharedSizeBytes,
      all.preferredShmemCarveout,
      all.clusterDimMustBeSet,
      all.requiredClusterWidth,
      all.requiredClusterHeight,
      all.requiredClusterDepth,
      all.nonPortableClusterSizeAllowed,
      all.clusterSchedulingPolicyPreference,
  };
  if (attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX) return cudaErrorInvalidValue;
  *value = values[attribute];
  return cudaSuccess;
}

template <class Handle>
CUresult name_of_kernel(const char** name, Handle handle) {
  return driver_call([&] {
    Kernel* kernel = find_kernel(handle);
    if (name == nullptr) return cudaErrorInvalidValue;
    if (kernel == nullptr) return cudaErrorInvalidResourceHandle;
    *name = kernel->name;
    return cudaSuccess;
  });
}

template <class Handle>
CUresult parameter_of(Handle handle, size_t index, size_t* offset, size_t* bytes) {
  return with_kernel(handle,
                     [&](Kernel& kernel) { return parameter_info(kernel, index, offset, bytes); });
}

/// cuLaunchKernel's `extra`: a list of names and values that ends with CU_LAUNCH_PARAM_END.
cudaError_t read_extra(void** extra, Parameters* parameters) {
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      parameters->packed = extra[1];
    } else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      parameters->packed_bytes = *static_cast<size_t*>(extra[1]);
    } else {
      return cudaErrorInvalidValue;
    }
  }
  return cudaSuccess;
}

CUresult launch_function(CUfunction function, LaunchRequest request, CUstream stream,
                         DefaultStream null_means, void** pointers, void** extra) {
  return context_call([&] {
    Kernel* kernel = find_kernel(function);
    if (kernel == nullptr) return cudaErrorInvalidResourceHandle;
    if (!find_stream(stream, null_means, &request.stream)) return cudaErrorInvalidResourceHandle;
    if (pointers != nullptr && extra != nullptr) return cudaErrorInvalidValue;
    Parameters parameters;
    parameters.pointers = pointers;
    cudaError_t error = extra == nullptr ? cudaSuccess : read_extra(extra, &parameters);
    return error == cudaSuccess ? launch(kernel, request, parameters) : error;
  });
}

LaunchRequest request_of(dim3 grid, dim3 block, unsigned shared_bytes) {
  LaunchRequest request;
  request.grid = grid;
  request.block = block;
  request.dynamic_shared_bytes = shared_bytes;
  return request;
}

cudaError_t read_config(const CUlaunchConfig* config, LaunchRequest* request) {
  if (config == nullptr) return cudaErrorInvalidValue;
  *request = request_of(dim3(config->gridDimX, config->gridDimY, config->gridDimZ),
                        dim3(config->blockDimX, config->blockDimY, config->blockDimZ),
                        config->sharedMemBytes);
  static_assert(sizeof(CUlaunchAttribute) == sizeof(cudaLaunchAttribute));
  auto* attributes = reinterpret_cast<const cudaLaunchAttribute*>(config->attrs);
  return apply_attributes(attributes, config->numAttrs, request);
}

CUresult launch_configured(const CUlaunchConfig* config, CUfunction function, void** pointers,
                           void** extra, DefaultStream null_means) {
  LaunchRequest request;
  cudaError_t error = read_config(config, &request);
  if (error != cudaSuccess) return to_result(error);
  return launch_function(function, request, config->hStream, null_means, pointers, extra);
}

}  // namespace

CB_DRIVER CUresult cuKernelGetFunction(CUfunction* function, CUkernel handle) {
  return with_kernel(handle, [&](Kernel&) {
    if (function == nullptr) return cudaErrorInvalidValue;
    *function = reinterpret_cast<CUfunction>(handle);
    return cudaSuccess;
  });
}

CB_DRIVER CUresult cuKernelGetName(const char** name, CUkernel kernel) {
  return name_of_kernel(name, kernel);
}
CB_DRIVER CUresult cuFuncGetName(const char** name, CUfunction function) {
  return name_of_kernel(name, function);
}

CB_DRIVER CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel handle,
                                        CUdevice device) {
  return with_kernel(handle, [&](Kernel& kernel) {
    if (!is_device(device)) return cudaErrorInvalidDevice;
    return attribute_of(kernel, device, attribute, value);
  });
}
CB_DRIVER CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute,
                                      CUfunction handle) {
  return with_kernel(handle, [&](Kernel& kernel) {
    return attribute_of(kernel, this_thread().device(), attribute, value);
  });
}

CB_DRIVER CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel handle,
                                        CUdevice device) {
  return with_kernel(handle, [&](Kernel& kernel) {
    if (!is_device(device)) return cudaErrorInvalidDevice;
    return set_function_attribute(kernel, device, attribute, value);
  });
}
CB_DRIVER CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute,
                                      int value) {
  return with_kernel(handle, [&](Kernel& kernel) {
    return set_function_attribute(kernel, this_thread().device(), attribute, value);
  });
}

CB_DRIVER CUresult cuKernelSetCacheConfig(CUkernel handle, CUfunc_cache config, CUdevice device) {
  return with_kernel(handle, [&](Kernel&) {
    return is_device(device) ? check_cache_config(config) : cudaErrorInvalidDevice;
  });
}
CB_DRIVER CUresult cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache config) {
  return with_kernel(handle, [&](Kernel&) { return check_cache_config(config); });
}

CB_DRIVER CUresult cuFuncSetSharedMemConfig(CUfunction handle, CUsharedconfig config) {
  return with_kernel(handle, [&](Kernel&) { return check_shared_config(config); });
}

CB_DRIVER CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset,
                                        size_t* bytes) {
  return parameter_of(kernel, index, offset, bytes);
}
CB_DRIVER CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset,
                                      size_t* bytes) {
  return parameter_of(function, index, offset, bytes);
}

CB_DRIVER CUresult cuKernelGetLibrary(CUlibrary* library, CUkernel handle) {
  return with_kernel(handle, [&](Kernel& kernel) {
    return library_of(*kernel.module, reinterpret_cast<void**>(library));
  });
}
CB_DRIVER CUresult cuFuncGetModule(CUmodule* module, CUfunction function) {
  return with_kernel(function, [&](Kernel& kernel) {
    return library_of(*kernel.module, reinterpret_cast<void**>(module));
  });
}

CB_DRIVER CUresult cuFuncLoad(CUfunction function) {
  return with_kernel(function, [](Kernel&) { return cudaSuccess; });
}

CB_DRIVER CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function) {
  return driver_call([&] {
    Kernel* kernel = find_kernel(function);
    if (state == nullptr) return cudaErrorInvalidValue;
    if (kernel == nullptr) return cudaErrorInvalidResourceHandle;
    *state = kernel->info == nullptr ? CU_FUNCTION_LOADING_STATE_UNLOADED
                                     : CU_FUNCTION_LOADING_STATE_LOADED;
    return cudaSuccess;
  });
}

CB_DRIVER CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* num_blocks, CUfunction function,
                                                               int block_size,
                                                               size_t dynamic_shared_bytes) {
  return with_kernel(function, [&](Kernel& kernel) {
    return active_blocks(kernel, block_size, dynamic_shared_bytes, num_blocks);
  });
}
CB_DRIVER CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* num_blocks,
                                                                        CUfunction function,
                                                                        int block_size,
                                                                        size_t dynamic_shared_bytes,
                                                                        unsigned flags) {
  if ((flags & ~unsigned{CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE}) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(num_blocks, function, block_size,
                                                     dynamic_shared_bytes);
}

CB_DRIVER CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(
    int* min_grid_size, int* block_size, CUfunction function,
    CUoccupancyB2DSize shared_bytes_of_block, size_t dynamic_shared_bytes, int block_size_limit,
    unsigned flags) {
  if ((flags & ~unsigned{CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE}) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return with_kernel(function, [&](Kernel& kernel) {
    return best_block_size(kernel, shared_bytes_of_block, dynamic_shared_bytes, block_size_limit,
                           min_grid_size, block_size);
  });
}
CB_DRIVER CUresult cuOccupancyMaxPotentialBlockSize(int* min_grid_size, int* block_size,
                                                    CUfunction function,
                                                    CUoccupancyB2DSize shared_bytes_of_block,
                                                    size_t dynamic_shared_bytes,
                                                    int block_size_limit) {
  return cuOccupancyMaxPotentialBlockSizeWithFlags(min_grid_size, block_size, function,
                                                   shared_bytes_of_block, dynamic_shared_bytes,
                                                   block_size_limit, 0);
}

CB_DRIVER CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction function,
                                                const CUlaunchConfig* config) {
  return with_kernel(function, [&](Kernel& kernel) {
    LaunchRequest request;
    cudaError_t error = read_config(config, &request);
    return error == cudaSuccess ? active_clusters(kernel, request, clusters) : error;
  });
}
CB_DRIVER CUresult cuOccupancyMaxPotentialClusterSize(int* blocks, CUfunction function,
                                                      const CUlaunchConfig* config) {
  return with_kernel(function, [&](Kernel& kernel) {
    LaunchRequest request;
    cudaError_t error = read_config(config, &request);
    return error == cudaSuccess ? largest_cluster(kernel, request, blocks) : error;
  });
}

CB_DRIVER CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, CUfunction function,
                                                           int num_blocks, int block_size) {
  return with_kernel(function, [&](Kernel& kernel) {
    return available_shared_bytes(kernel, num_blocks, block_size, bytes);
  });
}

CB_DRIVER CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                  unsigned grid_z, unsigned block_x, unsigned block_y,
                                  unsigned block_z, unsigned shared_bytes, CUstream stream,
                                  void** pointers, void** extra) {
  return launch_function(
      function,
      request_of(dim3(grid_x, grid_y, grid_z), dim3(block_x, block_y, block_z), shared_bytes),
      stream, DefaultStream::kLegacy, pointers, extra);
}
CB_DRIVER CUresult cuLaunchKernel_ptsz(CUfunction function, unsigned grid_x, unsigned grid_y,
                                       unsigned grid_z, unsigned block_x, unsigned block_y,
                                       unsigned block_z, unsigned shared_bytes, CUstream stream,
                                       void** pointers, void** extra) {
  return launch_function(
      function,
      request_of(dim3(grid_x, grid_y, grid_z), dim3(block_x, block_y, block_z), shared_bytes),
      stream, DefaultStream::kPerThread, pointers, extra);
}

CB_DRIVER CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function,
                                    void** pointers, void** extra) {
  return launch_configured(config, function, pointers, extra, DefaultStream::kLegacy);
}
CB_DRIVER CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction function,
                                         void** pointers, void** extra) {
  return launch_configured(config, function, pointers, extra, DefaultStream::kPerThread);
}

CB_DRIVER CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                             unsigned grid_z, unsigned block_x, unsigned block_y,
                                             unsigned block_z, unsigned shared_bytes,
                                             CUstream stream, void** pointers) {
  LaunchRequest request =
      request_of(dim3(grid_x, grid_y, grid_z), dim3(block_x, block_y, block_z), shared_bytes);
  request.cooperative = true;
  return launch_function(function, request, stream, DefaultStream::kLegacy, pointers, nullptr);
}
CB_DRIVER CUresult cuLaunchCooperativeKernel_ptsz(CUfunction function, unsigned grid_x,
                                                  unsigned grid_y, unsigned grid_z,
                                                  unsigned block_x, unsigned block_y,
                                                  unsigned block_z, unsigned shared_bytes,
                                                  CUstream stream, void** pointers) {
  LaunchRequest request =
      request_of(dim3(grid_x, grid_y, grid_z), dim3(block_x, block_y, block_z), shared_bytes);
  request.cooperative = true;
  return launch_function(function, request, stream, DefaultStream::kPerThread, pointers, nullptr);
}
