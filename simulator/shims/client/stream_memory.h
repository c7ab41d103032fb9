#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "simulator/protocol/protocol.h"
#include "simulator/shims/client/streams.h"

namespace cb::sim::client {

/// Lets a stream write words, or wait for the values of words; at most kMaxStreamMemoryOps.
cudaError_t do_stream_memory(cudaStream_t stream, const StreamMemoryOp* operations, size_t count,
                             DefaultStream null_means);

}  // namespace cb::sim::client
