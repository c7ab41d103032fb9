#pragma once

#include <cuda_runtime_api.h>

#include "simulator/shims/client/launch.h"
#include "simulator/shims/client/modules.h"

namespace cb::sim::client {

// All of these want a kernel that is loaded.

cudaFuncAttributes function_attributes(const Kernel& kernel, int device);
/// A cudaFuncAttribute; CUfunction_attribute has the same numbers for what can be set.
cudaError_t set_function_attribute(Kernel& kernel, int device, int attribute, int value);
/// Offset and size of a parameter; both results may be NULL.
cudaError_t parameter_info(const Kernel& kernel, size_t index, size_t* offset, size_t* bytes);

/// Occupancy on the current device.
cudaError_t active_blocks(const Kernel& kernel, int block_size, size_t dynamic_shared_bytes,
                          int* num_blocks);
/// The block size, at most `limit` (0: any), with the most threads resident on an SM, and the
/// number of such blocks that fill the device. `shared_bytes_of` says how much dynamic shared
/// memory a block of a size needs; without it every block has `dynamic_shared_bytes`.
cudaError_t best_block_size(const Kernel& kernel, size_t (*shared_bytes_of)(int block_size),
                            size_t dynamic_shared_bytes, int limit, int* min_grid_size,
                            int* block_size);
/// Clusters of a launch that are resident at once; fails as the launch would.
cudaError_t active_clusters(const Kernel& kernel, LaunchRequest request, int* clusters);
/// Blocks of the largest cluster that the launch could have; its own is not looked at.
cudaError_t largest_cluster(const Kernel& kernel, const LaunchRequest& request, int* blocks);
/// Dynamic shared memory that each of `num_blocks` resident blocks can have.
cudaError_t available_shared_bytes(const Kernel& kernel, int num_blocks, int block_size,
                                   size_t* bytes);

}  // namespace cb::sim::client
