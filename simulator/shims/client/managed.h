#pragma once

// Managed memory: pages of the simulator that the program maps at their device address, as those of
// cudaHostAlloc. Advice changes nothing but what a range's attributes say.

#include <cuda_runtime_api.h>

#include <cstdint>

#include "simulator/shims/client/streams.h"

namespace cb::sim::client {

cudaError_t allocate_managed(void** pointer, size_t bytes, unsigned flags);
/// Of cudaFree; the caller knows that `pointer` is the base of managed memory.
cudaError_t release_managed(void* pointer);
/// Locations are those of cudaMemLocation.
cudaError_t prefetch_managed(const void* pointer, size_t bytes, int location_type, int location,
                             unsigned flags, cudaStream_t stream, DefaultStream null_means);
cudaError_t advise_managed(const void* pointer, size_t bytes, int advice, int location_type,
                           int location);
cudaError_t managed_range_attribute(void* data, size_t data_bytes, int attribute,
                                    const void* pointer, size_t bytes);
cudaError_t attach_managed(cudaStream_t stream, const void* pointer, size_t bytes, unsigned flags,
                           DefaultStream null_means);

}  // namespace cb::sim::client
