#include <cstring>

#include "simulator/shims/cuda/driver.h"
#include "simulator/shims/cudart/error_table.h"

using namespace cb::sim::client;

namespace {

struct ResultName {
  int code;
  const char* name;
};

constexpr ResultName kNames[] = {
#define CB_RESULT(code, name) {code, name},
#include "simulator/shims/cuda/results.inc"
#undef CB_RESULT
};

}  // namespace

CB_DRIVER CUresult cuGetErrorName(CUresult result, const char** name) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (const ResultName& entry : kNames) {
    if (entry.code != result) continue;
    *name = entry.name;
    return CUDA_SUCCESS;
  }
  *name = nullptr;
  return CUDA_ERROR_INVALID_VALUE;
}

/// The driver's texts are those of the runtime's errors with the same numbers.
CB_DRIVER CUresult cuGetErrorString(CUresult result, const char** text) {
  const char* name = nullptr;
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *text = nullptr;
  if (cuGetErrorName(result, &name) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
  *text = error_text(static_cast<cudaError_t>(result));
  return CUDA_SUCCESS;
}
