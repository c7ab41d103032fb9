// How many blocks fit on an SM, and which block size is best.

#include "check.h"

__global__ void light(int* out) { out[threadIdx.x] = 1; }
__global__ void heavy(int* out) {
  __shared__ int scratch[10'000];
  scratch[threadIdx.x] = out[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = scratch[blockDim.x - 1 - threadIdx.x];
}

int main() {
  cudaDeviceProp properties;
  REQUIRE_OK(cudaGetDeviceProperties(&properties, 0));
  int threads_per_sm = properties.maxThreadsPerMultiProcessor;
  auto blocks = [](auto kernel, int threads, size_t shared_bytes) {
    int count = -1;
    EXPECT_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&count, kernel, threads, shared_bytes));
    return count;
  };
  EXPECT_EQUAL(blocks(light, 1024, 0), threads_per_sm / 1024);
  EXPECT_EQUAL(blocks(light, 256, 0), threads_per_sm / 256);
  EXPECT_EQUAL(blocks(light, 32, 0), properties.maxBlocksPerMultiProcessor);
  EXPECT_EQUAL(blocks(light, 1, 0), properties.maxBlocksPerMultiProcessor);

  size_t per_block = 40'000 + properties.reservedSharedMemPerBlock;
  EXPECT_EQUAL(blocks(heavy, 64, 0), properties.sharedMemPerMultiprocessor / per_block);
  EXPECT_EQUAL(blocks(light, 64, properties.sharedMemPerBlockOptin), 1);
  EXPECT_EQUAL(blocks(light, 64, properties.sharedMemPerBlockOptin + 1), 0);

  int grid = 0, block = 0;
  EXPECT_OK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, light));
  EXPECT_EQUAL(block * (grid / properties.multiProcessorCount), threads_per_sm);
  int count;
  EXPECT_ERROR(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&count, light, 0, 0),
               cudaErrorInvalidValue);
  cudaGetLastError();

  size_t available = 0;
  EXPECT_OK(cudaOccupancyAvailableDynamicSMemPerBlock(&available, light, 2, 128));
  EXPECT(blocks(light, 128, available) >= 2);
  EXPECT(blocks(light, 128, available + 256) < 2);
  return failures();
}
