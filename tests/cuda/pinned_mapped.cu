// Pinned memory that kernels and the host both read and write.

#include <cstring>

#include "check.h"

__global__ void double_values(const int* in, int* out, int count) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < count) out[at] = in[at] * 2;
}

int main() {
  constexpr int kCount = 5000;
  int *in, *out;
  REQUIRE_OK(cudaHostAlloc(&in, kCount * sizeof(int), cudaHostAllocMapped));
  REQUIRE_OK(cudaMallocHost(&out, kCount * sizeof(int)));
  for (int at = 0; at < kCount; ++at) in[at] = at + 1;
  memset(out, 0, kCount * sizeof(int));

  int* in_on_device = nullptr;
  EXPECT_OK(cudaHostGetDevicePointer(&in_on_device, in, 0));
  double_values<<<(kCount + 127) / 128, 128>>>(in_on_device, out, kCount);
  REQUIRE_OK(cudaDeviceSynchronize());
  bool right = true;
  for (int at = 0; at < kCount; ++at) right = right && out[at] == 2 * (at + 1);
  EXPECT(right);

  // Copies between pinned and device memory in a stream, and what the host sees after it.
  int* device;
  cudaStream_t stream;
  REQUIRE_OK(cudaMalloc(&device, kCount * sizeof(int)));
  REQUIRE_OK(cudaStreamCreate(&stream));
  memset(out, 0, kCount * sizeof(int));
  EXPECT_OK(cudaMemcpyAsync(device, in, kCount * sizeof(int), cudaMemcpyHostToDevice, stream));
  double_values<<<(kCount + 127) / 128, 128, 0, stream>>>(device, device, kCount);
  EXPECT_OK(cudaMemcpyAsync(out, device, kCount * sizeof(int), cudaMemcpyDeviceToHost, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT_EQUAL(out[kCount - 1], 2 * kCount);

  unsigned flags = 0;
  EXPECT_OK(cudaHostGetFlags(&flags, in));
  EXPECT((flags & cudaHostAllocMapped) != 0);
  EXPECT_ERROR(cudaHostGetDevicePointer(&in_on_device, &flags, 0), cudaErrorInvalidValue);
  EXPECT_ERROR(cudaHostAlloc(&in_on_device, 4, 0x1000), cudaErrorInvalidValue);
  EXPECT_ERROR(cudaFreeHost(&flags), cudaErrorInvalidValue);
  cudaGetLastError();
  EXPECT_OK(cudaStreamDestroy(stream));
  EXPECT_OK(cudaFree(device));
  EXPECT_OK(cudaFreeHost(in));
  EXPECT_OK(cudaFreeHost(out));
  EXPECT_OK(cudaFreeHost(nullptr));
  return failures();
}
