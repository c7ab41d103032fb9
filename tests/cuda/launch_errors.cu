// Launches that hardware refuses, and that none of them breaks the context.

#include "check.h"

__global__ void plain(int* out) { *out = 1; }
__global__ void __launch_bounds__(128) bounded(int* out) { *out = 2; }
__global__ void shared_user(int* out) {
  extern __shared__ int scratch[];
  scratch[threadIdx.x] = 3;
  __syncthreads();
  if (threadIdx.x == 0) *out = scratch[blockDim.x - 1];
}
__global__ void static_shared_user(int* out) {
  __shared__ int scratch[8192];
  scratch[threadIdx.x] = 4;
  __syncthreads();
  if (threadIdx.x == 0) *out = scratch[blockDim.x - 1];
}
void not_a_kernel() {}

int main() {
  int* out;
  REQUIRE_OK(cudaMalloc(&out, sizeof(int)));
  auto launch = [&](dim3 grid, dim3 block, size_t shared_bytes = 0) {
    plain<<<grid, block, shared_bytes>>>(out);
    return cudaGetLastError();
  };
  EXPECT_OK(launch(1, 1));
  EXPECT_ERROR(launch(0, 1), cudaErrorInvalidConfiguration);
  EXPECT_ERROR(launch(1, 0), cudaErrorInvalidConfiguration);
  EXPECT_ERROR(launch(1, 1025), cudaErrorInvalidConfiguration);
  EXPECT_ERROR(launch(1, dim3(32, 64)), cudaErrorInvalidConfiguration);
  EXPECT_ERROR(launch(1, dim3(1, 1, 65)), cudaErrorInvalidConfiguration);
  EXPECT_ERROR(launch(dim3(1, 65536), 1), cudaErrorInvalidConfiguration);
  EXPECT_ERROR(launch(dim3(1, 1, 65536), 1), cudaErrorInvalidConfiguration);
  EXPECT_OK(launch(dim3(1, 65535), 1));
  EXPECT_ERROR(launch(1, 1, 200'000), cudaErrorInvalidValue);
  EXPECT_OK(launch(1, 1, 48 << 10));
  EXPECT_ERROR(launch(1, 1, (48 << 10) + 1), cudaErrorInvalidValue);

  bounded<<<1, 128>>>(out);
  EXPECT_OK(cudaGetLastError());
  bounded<<<1, 256>>>(out);
  EXPECT(cudaGetLastError() != cudaSuccess);

  EXPECT_OK(
      cudaFuncSetAttribute(shared_user, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10));
  shared_user<<<1, 256, 100 << 10>>>(out);
  EXPECT_OK(cudaGetLastError());
  int value = 0;
  EXPECT_OK(cudaMemcpy(&value, out, sizeof value, cudaMemcpyDeviceToHost));
  EXPECT_EQUAL(value, 3);
  shared_user<<<1, 256, (100 << 10) + 4>>>(out);
  EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
  static_shared_user<<<1, 256, 20 << 10>>>(out);
  EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_ERROR(
      cudaFuncSetAttribute(shared_user, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 20),
      cudaErrorInvalidValue);
  EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);

  EXPECT_ERROR(cudaLaunchKernel(reinterpret_cast<const void*>(not_a_kernel), 1, 1, nullptr, 0, 0),
               cudaErrorInvalidDeviceFunction);
  EXPECT_ERROR(cudaPeekAtLastError(), cudaErrorInvalidDeviceFunction);
  EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidDeviceFunction);
  EXPECT_OK(cudaGetLastError());

  EXPECT_OK(launch(1, 1));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_OK(cudaMemcpy(&value, out, sizeof value, cudaMemcpyDeviceToHost));
  EXPECT_EQUAL(value, 1);
  EXPECT_OK(cudaFree(out));
  return failures();
}
