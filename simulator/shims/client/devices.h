#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace cb::sim::client {

cudaError_t synchronize_device();
/// Frees everything of this process on the current device. A broken context stays broken.
cudaError_t reset_device();

/// The device whose PCI address `text` is; cudaErrorInvalidValue when it is no such address.
cudaError_t find_by_pci_bus_id(int* device, const char* text);

/// Limits are kept and answered; none changes how kernels run.
cudaError_t set_limit(cudaLimit limit, size_t value);
cudaError_t get_limit(size_t* value, cudaLimit limit);

/// Flags of the current device as cudaSetDeviceFlags takes them.
/// Whether the flags of a device or context can be.
cudaError_t check_flags(unsigned flags);
cudaError_t set_flags(int device, unsigned flags);
unsigned get_flags(int device);

cudaError_t memory_info(size_t* free_bytes, size_t* total_bytes);

/// cudaErrorInvalidValue unless `kind` is a cudaFuncCache.
cudaError_t check_cache_config(int kind);

/// A bank size of shared memory, which devices of today ignore.
cudaError_t check_shared_config(int config);
/// Nothing but the devices writes to their memory here, so that there is nothing to wait for.
cudaError_t flush_rdma_writes(int target, int scope);

}  // namespace cb::sim::client
