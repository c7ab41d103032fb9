#include "simulator/shims/client/functions.h"

#include <algorithm>

#include "simulator/protocol/occupancy.h"
#include "simulator/shims/client/errors.h"
#include "simulator/shims/client/launch.h"
#include "simulator/shims/client/thread.h"

namespace cb::sim::client {
namespace {

int blocks_with(const Kernel& kernel, int block_size, uint64_t dynamic_shared_bytes) {
  const DeviceInfo& device = device_info(this_thread().device());
  uint64_t shared = kernel.info->static_shared_bytes + dynamic_shared_bytes;
  if (shared > device.shared_per_block_optin_bytes ||
      block_size > max_threads_per_block(device, *kernel.info)) {
    return 0;
  }
  BlockShape shape;
  shape.threads = static_cast<uint32_t>(block_size);
  shape.registers_per_thread = kernel.info->registers;
  shape.shared_bytes = shared;
  return static_cast<int>(blocks_per_sm(device, shape));
}

int clusters_with(const Kernel& kernel, const LaunchRequest& request, uint32_t blocks) {
  const DeviceInfo& device = device_info(this_thread().device());
  uint64_t threads = uint64_t{request.block.x} * request.block.y * request.block.z;
  if (threads > 1024) return 0;
  BlockShape shape;
  shape.threads = static_cast<uint32_t>(threads);
  shape.registers_per_thread = kernel.info->registers;
  shape.shared_bytes = kernel.info->static_shared_bytes + request.dynamic_shared_bytes;
  if (shape.shared_bytes > device.shared_per_block_optin_bytes) return 0;
  return static_cast<int>(clusters_per_device(device, shape, blocks));
}

}  // namespace

cudaFuncAttributes function_attributes(const Kernel& kernel, int device) {
  const KernelInfo& info = *kernel.info;
  const KernelSettings& settings = kernel.settings[device];
  cudaFuncAttributes attributes = {};
  attributes.sharedSizeBytes = info.static_shared_bytes;
  attributes.constSizeBytes = info.constant_bytes;
  attributes.localSizeBytes = info.local_bytes;
  attributes.maxThreadsPerBlock = max_threads_per_block(device_info(device), info);
  attributes.numRegs = static_cast<int>(info.registers);
  attributes.ptxVersion = static_cast<int>(info.ptx_version);
  attributes.binaryVersion = static_cast<int>(info.binary_version);
  attributes.maxDynamicSharedSizeBytes =
      static_cast<int>(max_dynamic_shared_bytes(device_info(device), info, settings));
  attributes.preferredShmemCarveout = settings.shared_carveout_percent;
  uint32_t cluster[3];
  required_cluster(info, settings, cluster);
  attributes.clusterDimMustBeSet = cluster[0] > 0 || info.explicit_cluster != 0;
  attributes.requiredClusterWidth = static_cast<int>(cluster[0]);
  attributes.requiredClusterHeight = static_cast<int>(cluster[1]);
  attributes.requiredClusterDepth = static_cast<int>(cluster[2]);
  attributes.clusterSchedulingPolicyPreference = settings.cluster_policy;
  attributes.nonPortableClusterSizeAllowed = settings.nonportable_cluster;
  return attributes;
}

cudaError_t set_function_attribute(Kernel& kernel, int device, int attribute, int value) {
  KernelSettings& settings = kernel.settings[device];
  switch (attribute) {
    case cudaFuncAttributeMaxDynamicSharedMemorySize: {
      uint64_t limit = device_info(device).shared_per_block_optin_bytes;
      if (value < 0 || uint64_t{kernel.info->static_shared_bytes} + value > limit) {
        return cudaErrorInvalidValue;
      }
      settings.max_dynamic_shared_bytes = value;
      return cudaSuccess;
    }
    case cudaFuncAttributePreferredSharedMemoryCarveout:
      if (value < cudaSharedmemCarveoutDefault || value > 100) return cudaErrorInvalidValue;
      settings.shared_carveout_percent = value;
      return cudaSuccess;
    case cudaFuncAttributeNonPortableClusterSizeAllowed:
      if (value != 0 && value != 1) return cudaErrorInvalidValue;
      settings.nonportable_cluster = value == 1;
      return cudaSuccess;
    case cudaFuncAttributeClusterSchedulingPolicyPreference:
      // Blocks are always spread over the SMs of their GPC, which every policy allows.
      if (value < cudaClusterSchedulingPolicyDefault ||
          value > cudaClusterSchedulingPolicyLoadBalancing) {
        return cudaErrorInvalidValue;
      }
      settings.cluster_policy = value;
      return cudaSuccess;
    case cudaFuncAttributeRequiredClusterWidth:
    case cudaFuncAttributeRequiredClusterHeight:
    case cudaFuncAttributeRequiredClusterDepth:
      if (kernel.info->required_cluster[0] != 0) return cudaErrorNotPermitted;
      if (value < 0) return cudaErrorInvalidValue;
      settings.required_cluster[attribute - cudaFuncAttributeRequiredClusterWidth] =
          static_cast<uint32_t>(value);
      return cudaSuccess;
    default:
      return cudaErrorInvalidValue;
  }
}

cudaError_t parameter_info(const Kernel& kernel, size_t index, size_t* offset, size_t* bytes) {
  if (index >= kernel.info->num_params) return cudaErrorInvalidValue;
  const ParamInfo& param = kernel.module->params[kernel.info->first_param + index];
  if (offset != nullptr) *offset = param.offset;
  if (bytes != nullptr) *bytes = param.bytes;
  return cudaSuccess;
}

cudaError_t active_blocks(const Kernel& kernel, int block_size, size_t dynamic_shared_bytes,
                          int* num_blocks) {
  if (num_blocks == nullptr || block_size <= 0) return cudaErrorInvalidValue;
  *num_blocks = blocks_with(kernel, block_size, dynamic_shared_bytes);
  return cudaSuccess;
}

cudaError_t best_block_size(const Kernel& kernel, size_t (*shared_bytes_of)(int block_size),
                            size_t dynamic_shared_bytes, int limit, int* min_grid_size,
                            int* block_size) {
  if (min_grid_size == nullptr || block_size == nullptr || limit < 0) return cudaErrorInvalidValue;
  const DeviceInfo& device = device_info(this_thread().device());
  int most = max_threads_per_block(device, *kernel.info);
  if (limit > 0) most = std::min(most, limit);
  int best_threads = 0;
  // From the largest down, in whole warps but for a limit that is none.
  for (int size = most; size > 0; size = (size - 1) / kWarpSize * kWarpSize) {
    size_t shared = shared_bytes_of == nullptr ? dynamic_shared_bytes : shared_bytes_of(size);
    int blocks = blocks_with(kernel, size, shared);
    if (blocks * size <= best_threads) continue;
    best_threads = blocks * size;
    *block_size = size;
    *min_grid_size = blocks * static_cast<int>(device.num_sms);
    if (best_threads == static_cast<int>(device.max_threads_per_sm)) break;
  }
  return best_threads > 0 ? cudaSuccess : cudaErrorInvalidConfiguration;
}

cudaError_t active_clusters(const Kernel& kernel, LaunchRequest request, int* clusters) {
  if (clusters == nullptr) return cudaErrorInvalidValue;
  int device = this_thread().device();
  cudaError_t error =
      check_launch(device_info(device), *kernel.info, kernel.settings[device], &request);
  if (error != cudaSuccess) return error;
  uint32_t blocks = request.cluster[0] * request.cluster[1] * request.cluster[2];
  *clusters = clusters_with(kernel, request, blocks);
  return cudaSuccess;
}

cudaError_t largest_cluster(const Kernel& kernel, const LaunchRequest& request, int* blocks) {
  if (blocks == nullptr) return cudaErrorInvalidValue;
  const KernelSettings& settings = kernel.settings[this_thread().device()];
  uint32_t most = settings.nonportable_cluster ? kLargestClusterBlocks : kPortableClusterBlocks;
  if (kernel.info->max_cluster_blocks != 0) {
    most = std::min(most, kernel.info->max_cluster_blocks);
  }
  while (most > 0 && clusters_with(kernel, request, most) == 0) --most;
  *blocks = static_cast<int>(most);
  return cudaSuccess;
}

cudaError_t available_shared_bytes(const Kernel& kernel, int num_blocks, int block_size,
                                   size_t* bytes) {
  if (bytes == nullptr || num_blocks <= 0 || block_size <= 0) return cudaErrorInvalidValue;
  if (blocks_with(kernel, block_size, 0) < num_blocks) return cudaErrorInvalidValue;
  const DeviceInfo& device = device_info(this_thread().device());
  uint64_t share = device.shared_per_sm_bytes / num_blocks / kSharedUnitBytes * kSharedUnitBytes;
  uint64_t fixed = device.reserved_shared_per_block_bytes + kernel.info->static_shared_bytes;
  uint64_t most = device.shared_per_block_optin_bytes - kernel.info->static_shared_bytes;
  *bytes = std::min(share > fixed ? share - fixed : 0, most);
  return cudaSuccess;
}

}  // namespace cb::sim::client
