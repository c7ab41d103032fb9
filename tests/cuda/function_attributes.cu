// Attributes of kernels: registers, shared memory, and raising its limit.

#include <cstring>

#include "check.h"

__global__ void __launch_bounds__(256) sample(const double* in, double* out) {
  __shared__ double scratch[256];
  double local[64];
  for (int at = 0; at < 64; ++at) local[at] = in[at] * at;
  scratch[threadIdx.x] = local[static_cast<int>(in[0]) & 63];
  __syncthreads();
  out[threadIdx.x] = scratch[255 - threadIdx.x];
}
__global__ void empty() {}

int main() {
  cudaFuncAttributes attributes;
  REQUIRE_OK(cudaFuncGetAttributes(&attributes, sample));
  cudaDeviceProp properties;
  REQUIRE_OK(cudaGetDeviceProperties(&properties, 0));
  EXPECT_EQUAL(attributes.sharedSizeBytes, 256 * sizeof(double));
  EXPECT_EQUAL(attributes.maxThreadsPerBlock, 256);
  EXPECT(attributes.localSizeBytes >= 64 * sizeof(double));
  EXPECT(attributes.numRegs > 0 && attributes.numRegs <= 255);
  EXPECT_EQUAL(attributes.binaryVersion, properties.major * 10 + properties.minor);
  EXPECT(attributes.ptxVersion >= 80);
  EXPECT_EQUAL(attributes.maxDynamicSharedSizeBytes,
               properties.sharedMemPerBlock - attributes.sharedSizeBytes);

  EXPECT_OK(cudaFuncSetAttribute(sample, cudaFuncAttributeMaxDynamicSharedMemorySize, 60'000));
  REQUIRE_OK(cudaFuncGetAttributes(&attributes, sample));
  EXPECT_EQUAL(attributes.maxDynamicSharedSizeBytes, 60'000);
  EXPECT_OK(cudaFuncSetAttribute(sample, cudaFuncAttributePreferredSharedMemoryCarveout, 50));
  REQUIRE_OK(cudaFuncGetAttributes(&attributes, sample));
  EXPECT_EQUAL(attributes.preferredShmemCarveout, 50);
  EXPECT_ERROR(cudaFuncSetAttribute(sample, cudaFuncAttributePreferredSharedMemoryCarveout, 101),
               cudaErrorInvalidValue);
  cudaGetLastError();

  REQUIRE_OK(cudaFuncGetAttributes(&attributes, empty));
  EXPECT_EQUAL(attributes.sharedSizeBytes, 0);
  EXPECT_EQUAL(attributes.localSizeBytes, 0);
  EXPECT_EQUAL(attributes.maxThreadsPerBlock, 1024);
  EXPECT_OK(cudaFuncSetCacheConfig(empty, cudaFuncCachePreferShared));
  EXPECT_ERROR(cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(&properties)),
               cudaErrorInvalidDeviceFunction);
  cudaGetLastError();

  const char* name = nullptr;
  EXPECT_OK(cudaFuncGetName(&name, reinterpret_cast<const void*>(empty)));
  EXPECT(name != nullptr && strstr(name, "empty") != nullptr);
  size_t offset = 0, bytes = 0;
  EXPECT_OK(cudaFuncGetParamInfo(reinterpret_cast<const void*>(sample), 1, &offset, &bytes));
  EXPECT_EQUAL(offset, 8);
  EXPECT_EQUAL(bytes, 8);
  EXPECT_ERROR(cudaFuncGetParamInfo(reinterpret_cast<const void*>(sample), 2, &offset, &bytes),
               cudaErrorInvalidValue);
  cudaGetLastError();
  return failures();
}
