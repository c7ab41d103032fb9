// Cooperative launches: a grid barrier of all blocks, and grids that are too large for one.

#include <cooperative_groups.h>

#include "check.h"

namespace cg = cooperative_groups;

/// Every block adds up what all blocks wrote before the barrier.
__global__ void sum_all(int* values, int* sums) {
  cg::grid_group grid = cg::this_grid();
  if (threadIdx.x == 0) values[blockIdx.x] = static_cast<int>(blockIdx.x) + 1;
  grid.sync();
  if (threadIdx.x == 0) {
    int sum = 0;
    for (unsigned at = 0; at < gridDim.x; ++at) sum += values[at];
    sums[blockIdx.x] = sum;
  }
}

int main() {
  int per_sm = 0;
  cudaDeviceProp properties;
  REQUIRE_OK(cudaGetDeviceProperties(&properties, 0));
  REQUIRE_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, sum_all, 64, 0));
  int most = per_sm * properties.multiProcessorCount;
  int blocks = 40;
  int *values, *sums;
  REQUIRE_OK(cudaMalloc(&values, blocks * sizeof(int)));
  REQUIRE_OK(cudaMalloc(&sums, blocks * sizeof(int)));
  void* args[] = {&values, &sums};
  EXPECT_OK(cudaLaunchCooperativeKernel(sum_all, dim3(blocks), dim3(64), args, 0, 0));
  int results[40];
  REQUIRE_OK(cudaMemcpy(results, sums, sizeof results, cudaMemcpyDeviceToHost));
  for (int result : results) EXPECT_EQUAL(result, blocks * (blocks + 1) / 2);

  EXPECT_ERROR(cudaLaunchCooperativeKernel(sum_all, dim3(most + 1), dim3(64), args, 0, 0),
               cudaErrorCooperativeLaunchTooLarge);
  EXPECT_ERROR(cudaGetLastError(), cudaErrorCooperativeLaunchTooLarge);

  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(64);
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  REQUIRE_OK(cudaMemset(sums, 0, sizeof results));
  EXPECT_OK(cudaLaunchKernelEx(&config, sum_all, values, sums));
  REQUIRE_OK(cudaMemcpy(results, sums, sizeof results, cudaMemcpyDeviceToHost));
  EXPECT_EQUAL(results[39], blocks * (blocks + 1) / 2);
  EXPECT_OK(cudaFree(values));
  EXPECT_OK(cudaFree(sums));
  return failures();
}
