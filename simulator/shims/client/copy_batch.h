#pragma once

#include <cuda_runtime_api.h>

#include "simulator/shims/client/streams.h"

namespace cb::sim::client {

/// The arguments of cudaMemcpyBatchAsync; those of the driver's function have the same layout.
struct CopyBatch {
  void* const* dsts = nullptr;
  const void* const* srcs = nullptr;
  const size_t* sizes = nullptr;
  size_t count = 0;
  const cudaMemcpyAttributes* attributes = nullptr;
  const size_t* first_of = nullptr;  ///< the copy from which on each attribute holds
  size_t num_attributes = 0;
};

/// Copies that are not ordered among each other: one after the other is one of the orders. Hints of
/// locations do not matter for memory of CUDA's, and a source is never read later here than an
/// attribute allows.
cudaError_t copy_batch(const CopyBatch& batch, cudaStream_t stream, DefaultStream null_means);

}  // namespace cb::sim::client
