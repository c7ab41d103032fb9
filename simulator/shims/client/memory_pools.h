#pragma once

// Stream-ordered memory and its pools. What a pool holds is the daemon's; here are the handles, and
// which pool is a device's current one. Both APIs have the same values for attributes, handle types
// and access flags.

#include <cuda_runtime_api.h>

#include <cstdint>

#include "simulator/shims/client/streams.h"

namespace cb::sim::client {

struct PoolProperties {
  int allocation_type = 0;
  unsigned handle_types = 0;
  int location_type = 0;
  int location = 0;
  size_t max_bytes = 0;
  unsigned usage = 0;
};

cudaError_t create_pool(cudaMemPool_t* handle, const PoolProperties& properties);
cudaError_t destroy_pool(cudaMemPool_t handle);
cudaError_t default_pool(cudaMemPool_t* handle, int device);
cudaError_t current_pool(cudaMemPool_t* handle, int device);
cudaError_t set_current_pool(int device, cudaMemPool_t handle);
/// cudaMemGetDefaultMemPool and its like name a pool by location and type: cudaSuccess for those of
/// devices.
cudaError_t check_pool_place(int location_type, int location, int allocation_type);

cudaError_t trim_pool(cudaMemPool_t handle, size_t keep);
/// `value` points to an int or a uint64_t, as the attribute wants it.
cudaError_t get_pool_attribute(cudaMemPool_t handle, int attribute, void* value);
cudaError_t set_pool_attribute(cudaMemPool_t handle, int attribute, const void* value);
cudaError_t get_pool_access(cudaMemPool_t handle, int location_type, int location, uint64_t* flags);
cudaError_t set_pool_access(cudaMemPool_t handle, int location_type, int location, uint64_t flags);

cudaError_t export_pool(void* shareable, cudaMemPool_t handle, unsigned handle_type,
                        unsigned long long flags);
cudaError_t import_pool(cudaMemPool_t* handle, void* shareable, unsigned handle_type,
                        unsigned long long flags);
/// `data` has 64 bytes.
cudaError_t export_pooled(void* data, void* pointer);
cudaError_t import_pooled(void** pointer, cudaMemPool_t handle, const void* data);

/// `pool` nullptr: the current one of the stream's device.
cudaError_t allocate_async(void** pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream,
                           DefaultStream null_means);
cudaError_t free_async(void* pointer, cudaStream_t stream, DefaultStream null_means);

/// Forgets all of `device`, which is reset.
void remove_pools_of(int device);

}  // namespace cb::sim::client
