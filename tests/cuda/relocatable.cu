// Relocatable device code (nvcc -rdc=true): device functions and variables that are found at link
// time, and function pointers in a table.

#include "check.h"

extern __device__ int twice(int value);
extern __device__ int calls;
extern __constant__ int offset;

__device__ int (*operations[])(int) = {twice, nullptr};

__global__ void apply(int* values, bool through_table) {
  int* value = values + threadIdx.x;
  *value = (through_table ? operations[0](*value) : twice(*value)) + offset;
}

__device__ __noinline__ int twice(int value) {
  atomicAdd(&calls, 1);
  return 2 * value;
}
__device__ int calls = 0;
__constant__ int offset = 100;

int main() {
  int* values = nullptr;
  REQUIRE_OK(cudaMallocHost(&values, 32 * sizeof(int)));
  for (int i = 0; i < 32; ++i) values[i] = i;
  apply<<<1, 32>>>(values, false);
  apply<<<1, 32>>>(values, true);
  EXPECT_OK(cudaDeviceSynchronize());
  for (int i = 0; i < 32; ++i) EXPECT_EQUAL(values[i], 2 * (2 * i + 100) + 100);
  int counted = 0;
  EXPECT_OK(cudaMemcpyFromSymbol(&counted, calls, sizeof counted));
  EXPECT_EQUAL(counted, 64);
  int new_offset = -1;
  EXPECT_OK(cudaMemcpyToSymbol(offset, &new_offset, sizeof new_offset));
  apply<<<1, 32>>>(values, true);
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_EQUAL(values[0], 2 * 300 - 1);
  return failures();
}
