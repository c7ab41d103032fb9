// The block size that fills a device best, by all functions that tell it.

#include <cuda.h>

#include "check.h"

#define EXPECT_CU(call) EXPECT_EQUAL(call, CUDA_SUCCESS)

__global__ void small(float* out) { out[threadIdx.x] = threadIdx.x; }
__global__ void __launch_bounds__(128) bounded(float* out) { out[threadIdx.x] = threadIdx.x; }
__global__ void shared_user(float* out) {
  extern __shared__ float buffer[];
  buffer[threadIdx.x] = out[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = buffer[blockDim.x - 1 - threadIdx.x];
}

static size_t kilobyte_per_warp(int block_size) { return block_size / 32 * 1024; }

template <class Kernel>
static void check_best(Kernel kernel, int limit, int most) {
  cudaDeviceProp device;
  REQUIRE_OK(cudaGetDeviceProperties(&device, 0));
  int grid = 0, block = 0, resident = 0;
  EXPECT_OK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, kernel, 0, limit));
  EXPECT(block > 0 && block <= most);
  EXPECT_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, block, 0));
  EXPECT_EQUAL(grid, resident * device.multiProcessorCount);
  // No other block size has more threads resident.
  for (int size = 32; size <= most; size += 32) {
    int its_resident = 0;
    EXPECT_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&its_resident, kernel, size, 0));
    EXPECT(its_resident * size <= resident * block);
  }
  cudaFunction_t function = nullptr;
  EXPECT_OK(cudaGetFuncBySymbol(&function, reinterpret_cast<void*>(kernel)));
  int driver_grid = 0, driver_block = 0;
  EXPECT_CU(
      cuOccupancyMaxPotentialBlockSize(&driver_grid, &driver_block, function, nullptr, 0, limit));
  EXPECT_EQUAL(driver_grid, grid);
  EXPECT_EQUAL(driver_block, block);
}

int main() {
  check_best(small, 0, 1024);
  check_best(small, 256, 256);
  check_best(bounded, 0, 128);

  int grid = 0, block = 0;
  EXPECT_OK(cudaOccupancyMaxPotentialBlockSizeVariableSMem(&grid, &block, shared_user,
                                                           kilobyte_per_warp));
  cudaFunction_t function = nullptr;
  EXPECT_OK(cudaGetFuncBySymbol(&function, reinterpret_cast<void*>(shared_user)));
  int driver_grid = 0, driver_block = 0;
  EXPECT_CU(cuOccupancyMaxPotentialBlockSizeWithFlags(
      &driver_grid, &driver_block, function, kilobyte_per_warp, 0, 0, CU_OCCUPANCY_DEFAULT));
  EXPECT_EQUAL(driver_block, block);
  EXPECT_EQUAL(driver_grid, grid);

  size_t bytes = 0, driver_bytes = 0;
  EXPECT_OK(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, shared_user, 2, 256));
  EXPECT_CU(cuOccupancyAvailableDynamicSMemPerBlock(&driver_bytes, function, 2, 256));
  EXPECT_EQUAL(bytes, driver_bytes);
  EXPECT_OK(cudaFuncSetAttribute(shared_user, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  int resident = 0;
  EXPECT_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
      &resident, shared_user, 256, bytes, cudaOccupancyDisableCachingOverride));
  EXPECT(resident >= 2);
  EXPECT_ERROR(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&resident, shared_user, 256,
                                                                      bytes, 77),
               cudaErrorInvalidValue);
  EXPECT_EQUAL(
      cuOccupancyMaxPotentialBlockSizeWithFlags(&grid, &block, function, nullptr, 0, 0, 77),
      CUDA_ERROR_INVALID_VALUE);
  return failures();
}
