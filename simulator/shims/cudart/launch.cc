#include "simulator/shims/client/launch.h"

#include "simulator/shims/client/events.h"
#include "simulator/shims/cudart/api.h"
#include "simulator/shims/cudart/launch_attributes.h"
#include "simulator/shims/cudart/registration.h"

using namespace cb::sim::client;

namespace {

constexpr auto kLegacy = DefaultStream::kLegacy;
constexpr auto kPerThread = DefaultStream::kPerThread;

cudaError_t launch_plain(const void* func, dim3 grid, dim3 block, void** args, size_t shared_bytes,
                         cudaStream_t stream, DefaultStream null_means, bool cooperative) {
  return api([&] {
    Kernel* kernel = find_function(func);
    if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
    LaunchRequest request;
    if (!find_stream(stream, null_means, &request.stream)) return cudaErrorInvalidResourceHandle;
    request.grid = grid;
    request.block = block;
    request.dynamic_shared_bytes = shared_bytes;
    request.cooperative = cooperative;
    Parameters parameters;
    parameters.pointers = args;
    return launch(kernel, request, parameters);
  });
}

cudaError_t launch_configured(const cudaLaunchConfig_t* config, const void* func, void** args,
                              DefaultStream null_means) {
  return api([&] {
    if (config == nullptr) return cudaErrorInvalidValue;
    Kernel* kernel = find_function(func);
    if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
    LaunchRequest request;
    if (!find_stream(config->stream, null_means, &request.stream)) {
      return cudaErrorInvalidResourceHandle;
    }
    request.grid = config->gridDim;
    request.block = config->blockDim;
    request.dynamic_shared_bytes = config->dynamicSmemBytes;
    cudaError_t error = apply_attributes(config->attrs, config->numAttrs, &request);
    if (error != cudaSuccess) return error;
    Parameters parameters;
    parameters.pointers = args;
    return launch(kernel, request, parameters);
  });
}

}  // namespace

CB_API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                            CUstream_st* stream) {
  Thread& thread = this_thread();
  if (thread.num_configurations == Thread::kMaxConfigurations) return 1;
  thread.configurations[thread.num_configurations++] = {grid, block, shared_bytes, stream};
  return 0;
}

CB_API cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes,
                                              void* stream) {
  Thread& thread = this_thread();
  if (thread.num_configurations == 0) return record(cudaErrorMissingConfiguration);
  const CallConfiguration& top = thread.configurations[--thread.num_configurations];
  *grid = top.grid;
  *block = top.block;
  *shared_bytes = top.dynamic_shared_bytes;
  *static_cast<cudaStream_t*>(stream) = top.stream;
  return cudaSuccess;
}

/// The handle works before the kernel's module is loaded, so that a module that cannot be loaded
/// fails at the launch, with its own error.
CB_API cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* func) {
  *kernel = static_cast<cudaKernel_t>(find_function_handle(func));
  return *kernel == nullptr ? record(cudaErrorInvalidDeviceFunction) : cudaSuccess;
}

CB_API cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** args,
                                      size_t shared_bytes, cudaStream_t stream) {
  return launch_plain(kernel, grid, block, args, shared_bytes, stream, kLegacy, false);
}
CB_API cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void** args,
                                           size_t shared_bytes, cudaStream_t stream) {
  return launch_plain(kernel, grid, block, args, shared_bytes, stream, kPerThread, false);
}

CB_API cudaError_t cudaLaunchKernel(const void* func, dim3 grid, dim3 block, void** args,
                                    size_t shared_bytes, cudaStream_t stream) {
  return launch_plain(func, grid, block, args, shared_bytes, stream, kLegacy, false);
}
CB_API cudaError_t cudaLaunchKernel_ptsz(const void* func, dim3 grid, dim3 block, void** args,
                                         size_t shared_bytes, cudaStream_t stream) {
  return launch_plain(func, grid, block, args, shared_bytes, stream, kPerThread, false);
}

CB_API cudaError_t cudaLaunchCooperativeKernel(const void* func, dim3 grid, dim3 block, void** args,
                                               size_t shared_bytes, cudaStream_t stream) {
  return launch_plain(func, grid, block, args, shared_bytes, stream, kLegacy, true);
}
CB_API cudaError_t cudaLaunchCooperativeKernel_ptsz(const void* func, dim3 grid, dim3 block,
                                                    void** args, size_t shared_bytes,
                                                    cudaStream_t stream) {
  return launch_plain(func, grid, block, args, shared_bytes, stream, kPerThread, true);
}

CB_API cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* func,
                                       void** args) {
  return launch_configured(config, func, args, kLegacy);
}
CB_API cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t* config, const void* func,
                                            void** args) {
  return launch_configured(config, func, args, kPerThread);
}
