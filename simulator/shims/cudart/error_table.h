#pragma once

#include <cuda_runtime_api.h>

namespace cb::sim::client {

/// CUDA's own words for its error codes; "unrecognized error code" for other numbers.
const char* error_name(cudaError_t error);
const char* error_text(cudaError_t error);
bool is_error_code(int code);

}  // namespace cb::sim::client
