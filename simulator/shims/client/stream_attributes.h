#pragma once

// Attributes of streams. Both APIs have the same numbers and values, of which cudart's are used.

#include <cuda_runtime_api.h>

#include "simulator/shims/client/streams.h"

namespace cb::sim::client {

cudaError_t set_stream_attribute(cudaStream_t stream, int attribute,
                                 const cudaLaunchAttributeValue* value, DefaultStream null_means);
cudaError_t get_stream_attribute(cudaStream_t stream, int attribute,
                                 cudaLaunchAttributeValue* value, DefaultStream null_means);
cudaError_t copy_stream_attributes(cudaStream_t to, cudaStream_t from, DefaultStream null_means);

}  // namespace cb::sim::client
