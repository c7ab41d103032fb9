#include "simulator/shims/client/launch.h"

#include <algorithm>
#include <cstring>

#include "simulator/protocol/occupancy.h"
#include "simulator/shims/client/call.h"
#include "simulator/shims/client/capture.h"
#include "simulator/shims/client/process.h"

namespace cb::sim::client {
namespace {

constexpr uint32_t kMaxBlock[3] = {1024, 1024, 64};
constexpr uint32_t kMaxThreads = 1024;
constexpr uint32_t kMaxGrid[3] = {0x7fffffff, 65535, 65535};

void unpack(const dim3& dims, uint32_t (&out)[3]) {
  out[0] = dims.x;
  out[1] = dims.y;
  out[2] = dims.z;
}

uint64_t product(const uint32_t (&dims)[3]) { return uint64_t{dims[0]} * dims[1] * dims[2]; }

cudaError_t check_dimensions(const uint32_t (&grid)[3], const uint32_t (&block)[3]) {
  for (int axis = 0; axis < 3; ++axis) {
    if (grid[axis] == 0 || grid[axis] > kMaxGrid[axis]) return cudaErrorInvalidConfiguration;
    if (block[axis] == 0 || block[axis] > kMaxBlock[axis]) return cudaErrorInvalidConfiguration;
  }
  return product(block) > kMaxThreads ? cudaErrorInvalidConfiguration : cudaSuccess;
}

cudaError_t check_cluster(const DeviceInfo& device, const KernelInfo& kernel,
                          const KernelSettings& settings, const BlockShape& shape,
                          LaunchRequest* request) {
  uint32_t required[3];
  if (!required_cluster(kernel, settings, required)) return cudaErrorInvalidClusterSize;
  bool asked = (request->cluster[0] | request->cluster[1] | request->cluster[2]) != 0;
  bool is_required = required[0] != 0;
  request->explicit_cluster = asked || is_required;
  if (!asked) {
    if (!is_required && kernel.explicit_cluster != 0) return cudaErrorInvalidClusterSize;
    for (int axis = 0; axis < 3; ++axis) request->cluster[axis] = is_required ? required[axis] : 1;
  } else if (is_required && memcmp(request->cluster, required, sizeof required) != 0) {
    return cudaErrorInvalidClusterSize;
  }
  uint64_t blocks = product(request->cluster);
  if (blocks == 0) return cudaErrorInvalidClusterSize;
  if (blocks == 1) return cudaSuccess;
  if (!device.has_clusters()) return cudaErrorNotSupported;
  uint32_t most = settings.nonportable_cluster ? kLargestClusterBlocks : kPortableClusterBlocks;
  if (kernel.max_cluster_blocks != 0) most = std::min(most, kernel.max_cluster_blocks);
  if (blocks > most) return cudaErrorInvalidClusterSize;
  uint32_t grid[3];
  unpack(request->grid, grid);
  for (int axis = 0; axis < 3; ++axis) {
    if (grid[axis] % request->cluster[axis] != 0) return cudaErrorInvalidClusterSize;
  }
  uint64_t resident = clusters_per_device(device, shape, static_cast<uint32_t>(blocks));
  if (resident == 0) return cudaErrorInvalidClusterSize;
  bool fits = !request->cooperative || product(grid) <= resident * blocks;
  return fits ? cudaSuccess : cudaErrorCooperativeLaunchTooLarge;
}

/// Packs what `pointers` point to as the kernel's parameter space has it.
void pack(const Kernel& kernel, void** pointers, uint8_t* packed) {
  const ParamInfo* params = kernel.module->params + kernel.info->first_param;
  for (uint32_t at = 0; at < kernel.info->num_params; ++at) {
    memcpy(packed + params[at].offset, pointers[at], params[at].bytes);
  }
}

}  // namespace

int max_threads_per_block(const DeviceInfo& device, const KernelInfo& kernel) {
  uint32_t threads =
      kernel.max_threads == 0 ? kMaxThreads : std::min(kernel.max_threads, kMaxThreads);
  BlockShape shape;
  shape.registers_per_thread = kernel.registers;
  for (shape.threads = threads; shape.threads > 0;) {
    if (blocks_per_sm(device, shape) > 0) break;
    shape.threads = (shape.threads - 1) / kWarpSize * kWarpSize;
  }
  return static_cast<int>(shape.threads);
}

uint64_t max_dynamic_shared_bytes(const DeviceInfo& device, const KernelInfo& kernel,
                                  const KernelSettings& settings) {
  if (settings.max_dynamic_shared_bytes >= 0) return settings.max_dynamic_shared_bytes;
  uint64_t fixed = kernel.static_shared_bytes;
  return device.shared_per_block_bytes > fixed ? device.shared_per_block_bytes - fixed : 0;
}

bool required_cluster(const KernelInfo& kernel, const KernelSettings& settings,
                      uint32_t (&shape)[3]) {
  bool is_compiled_in = product(kernel.required_cluster) > 0;
  memcpy(shape, is_compiled_in ? kernel.required_cluster : settings.required_cluster, sizeof shape);
  return product(shape) > 0 || (shape[0] | shape[1] | shape[2]) == 0;
}

cudaError_t check_launch(const DeviceInfo& device, const KernelInfo& kernel,
                         const KernelSettings& settings, LaunchRequest* request) {
  uint32_t grid[3], block[3];
  unpack(request->grid, grid);
  unpack(request->block, block);
  cudaError_t error = check_dimensions(grid, block);
  if (error != cudaSuccess) return error;
  if (product(block) > static_cast<uint64_t>(max_threads_per_block(device, kernel))) {
    return cudaErrorLaunchOutOfResources;
  }
  uint64_t allowed = max_dynamic_shared_bytes(device, kernel, settings);
  if (request->dynamic_shared_bytes > allowed) return cudaErrorInvalidValue;
  BlockShape shape;
  shape.threads = static_cast<uint32_t>(product(block));
  shape.registers_per_thread = kernel.registers;
  shape.shared_bytes = kernel.static_shared_bytes + request->dynamic_shared_bytes;
  error = check_cluster(device, kernel, settings, shape, request);
  if (error != cudaSuccess || !request->cooperative) return error;
  uint64_t resident = uint64_t{blocks_per_sm(device, shape)} * device.num_sms;
  return product(grid) > resident ? cudaErrorCooperativeLaunchTooLarge : cudaSuccess;
}

cudaError_t launch(Kernel* kernel, LaunchRequest request, const Parameters& parameters) {
  int device = request.stream.device;
  if (device != this_thread().device()) return cudaErrorInvalidResourceHandle;
  cudaError_t error = load_kernel(kernel);
  if (error != cudaSuccess) return error;
  const KernelInfo& info = *kernel->info;
  const KernelSettings& settings = kernel->settings[device];
  error = check_launch(device_info(device), info, settings, &request);
  if (error != cudaSuccess) return error;

  const void* bytes = nullptr;
  if (parameters.packed != nullptr) {
    if (parameters.packed_bytes < info.param_bytes) return cudaErrorInvalidValue;
    bytes = parameters.packed;
  } else if (info.num_params > 0) {
    if (parameters.pointers == nullptr) return cudaErrorInvalidValue;
    // A few hundred bytes as a rule, at most one payload.
    auto* packed = static_cast<uint8_t*>(__builtin_alloca(info.param_bytes));
    memset(packed, 0, info.param_bytes);
    pack(*kernel, parameters.pointers, packed);
    bytes = packed;
  }

  Launch message;
  message.module = kernel->module->id;
  message.kernel = static_cast<uint32_t>(kernel->info - kernel->module->kernels);
  unpack(request.grid, message.grid);
  unpack(request.block, message.block);
  memcpy(message.cluster, request.cluster, sizeof message.cluster);
  message.explicit_cluster = request.explicit_cluster;
  message.dynamic_shared_bytes = static_cast<uint32_t>(request.dynamic_shared_bytes);
  message.max_dynamic_shared_bytes =
      static_cast<uint32_t>(max_dynamic_shared_bytes(device_info(device), info, settings));
  message.cooperative = request.cooperative;
  message.programmatic_serialization = request.programmatic_serialization;
  message.device = static_cast<uint32_t>(device);
  message.stream = request.stream.id;
  message.param_bytes = info.param_bytes;
  message.priority = request.has_priority ? request.priority : request.stream.priority;
  Bytes packed{bytes, bytes == nullptr ? 0 : info.param_bytes};
  if (capture_work(request.stream, GraphNode(), {&message, sizeof message}, packed, &error) !=
      Captured::kNo) {
    return error;
  }
  return Call(Op::kLaunch).payload({&message, sizeof message}, packed).send();
}

}  // namespace cb::sim::client
