#include "simulator/shims/cudart/error_table.h"

#include "simulator/shims/cudart/api.h"

using namespace cb::sim::client;

CB_API cudaError_t cudaGetLastError() { return last_error(true); }

CB_API cudaError_t cudaPeekAtLastError() { return last_error(false); }

CB_API const char* cudaGetErrorName(cudaError_t error) { return error_name(error); }

CB_API const char* cudaGetErrorString(cudaError_t error) { return error_text(error); }
