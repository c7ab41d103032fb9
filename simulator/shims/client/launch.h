#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "simulator/protocol/protocol.h"
#include "simulator/shims/client/modules.h"
#include "simulator/shims/client/streams.h"

namespace cb::sim::client {

/// A launch as the caller asked for it, still unchecked.
struct LaunchRequest {
  dim3 grid = {1, 1, 1};
  dim3 block = {1, 1, 1};
  uint32_t cluster[3] = {0, 0, 0};  ///< all 0: not asked for
  bool explicit_cluster = false;    ///< set by check_launch: the launch or the kernel names it
  uint64_t dynamic_shared_bytes = 0;
  bool cooperative = false;
  bool programmatic_serialization = false;
  bool has_priority = false;
  int priority = 0;
  Stream stream;
};

/// Where the parameters come from: one pointer per parameter, or all of them packed.
struct Parameters {
  void** pointers = nullptr;
  const void* packed = nullptr;
  size_t packed_bytes = 0;
};

/// Threads per block that the kernel's registers and launch bounds allow.
int max_threads_per_block(const DeviceInfo& device, const KernelInfo& kernel);
/// Dynamic shared memory that a launch may ask for.
uint64_t max_dynamic_shared_bytes(const DeviceInfo& device, const KernelInfo& kernel,
                                  const KernelSettings& settings);

/// Whether hardware would take the launch: cudaSuccess or the error that CUDA returns. Fills in a
/// cluster that the kernel requires.
cudaError_t check_launch(const DeviceInfo& device, const KernelInfo& kernel,
                         const KernelSettings& settings, LaunchRequest* request);

/// The shape that the kernel's clusters must have: all 0 where any will do. False: the settings
/// name a shape that has no extent in some direction.
bool required_cluster(const KernelInfo& kernel, const KernelSettings& settings,
                      uint32_t (&shape)[3]);

/// Checks and sends it. Errors of the execution itself come with later calls.
cudaError_t launch(Kernel* kernel, LaunchRequest request, const Parameters& parameters);

}  // namespace cb::sim::client
