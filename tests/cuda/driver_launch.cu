// cuLaunchKernel: parameters by pointers and packed, with gaps between them, and launches that are
// refused.

#include <cuda.h>

#include <cstdint>
#include <cstring>

#include "check.h"

#define EXPECT_CU(call) EXPECT_EQUAL(call, CUDA_SUCCESS)

struct Pair {
  char tag;
  double value;
};

extern "C" __global__ void store(char first, double* out, short second, Pair pair, float third) {
  out[0] = first;
  out[1] = second;
  out[2] = pair.tag;
  out[3] = pair.value;
  out[4] = third;
}

static double* out;
static char first = 'a';
static short second = -2;
static Pair pair = {'p', 0.5};
static float third = 1.25F;

static void check_and_clear(const char* how) {
  EXPECT_CU(cuCtxSynchronize());
  bool right = out[0] == 'a' && out[1] == -2 && out[2] == 'p' && out[3] == 0.5 && out[4] == 1.25;
  if (!EXPECT(right)) fprintf(stderr, "with parameters %s\n", how);
  memset(out, 0, 5 * sizeof *out);
}

int main() {
  REQUIRE_OK(cudaMallocHost(&out, 5 * sizeof *out));
  memset(out, 0, 5 * sizeof *out);
  cudaFunction_t runtime_function = nullptr;
  REQUIRE_OK(cudaGetFuncBySymbol(&runtime_function, reinterpret_cast<void*>(store)));
  CUfunction function = runtime_function;

  void* pointers[] = {&first, &out, &second, &pair, &third};
  EXPECT_CU(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, pointers, nullptr));
  check_and_clear("by pointers");

  // The layout comes from the function itself.
  unsigned char packed[64] = {};
  size_t offset = 0, bytes = 0, used = 0;
  const void* sources[] = {&first, &out, &second, &pair, &third};
  for (size_t at = 0; at < 5; ++at) {
    EXPECT_CU(cuFuncGetParamInfo(function, at, &offset, &bytes));
    EXPECT(offset >= used && offset + bytes <= sizeof packed);
    memcpy(packed + offset, sources[at], bytes);
    used = offset + bytes;
  }
  EXPECT_EQUAL(cuFuncGetParamInfo(function, 5, &offset, &bytes), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQUAL(used, 44);
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &used,
                   CU_LAUNCH_PARAM_END};
  EXPECT_CU(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra));
  check_and_clear("packed");

  CUlaunchConfig config = {};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  EXPECT_CU(cuLaunchKernelEx(&config, function, pointers, nullptr));
  check_and_clear("by a configuration");
  EXPECT_CU(cuLaunchCooperativeKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, pointers));
  check_and_clear("of a cooperative launch");

  EXPECT_EQUAL(cuLaunchKernel(function, 0, 1, 1, 1, 1, 1, 0, nullptr, pointers, nullptr),
               CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQUAL(cuLaunchKernel(function, 1, 1, 1, 2048, 1, 1, 0, nullptr, pointers, nullptr),
               CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQUAL(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, pointers, extra),
               CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, pointers, nullptr) != CUDA_SUCCESS);
  EXPECT_EQUAL(cuLaunchKernelEx(nullptr, function, pointers, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuCtxSynchronize());
  EXPECT_EQUAL(out[0], 0);
  return failures();
}
