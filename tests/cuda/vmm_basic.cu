// Virtual memory management in one process: create, reserve, map, access, unmap, map again.

#include <cuda.h>

#include "check.h"

#define EXPECT_CU(call, expected) EXPECT_EQUAL((call), (expected))

__global__ void fill(int* values, int start) { values[threadIdx.x] = start + threadIdx.x; }
__global__ void wait_for(volatile int* flag, int* seen) {
  while (*flag == 0) {
  }
  *seen = *flag;
}
__global__ void raise(volatile int* flag) { *flag = 7; }

int main() {
  REQUIRE_OK(cudaSetDevice(0));
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  size_t bytes = 0;
  EXPECT_CU(cuMemGetAllocationGranularity(&bytes, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
            CUDA_SUCCESS);
  EXPECT(bytes >= 65536 && (bytes & (bytes - 1)) == 0);

  // Two chunks side by side, and the first one once more.
  CUmemGenericAllocationHandle chunk[2];
  for (auto& one : chunk) EXPECT_CU(cuMemCreate(&one, bytes, &prop, 0), CUDA_SUCCESS);
  CUdeviceptr base = 0;
  EXPECT_CU(cuMemAddressReserve(&base, 3 * bytes, 0, 0, 0), CUDA_SUCCESS);
  EXPECT_CU(cuMemMap(base, bytes, 0, chunk[0], 0), CUDA_SUCCESS);
  EXPECT_CU(cuMemMap(base + bytes, bytes, 0, chunk[1], 0), CUDA_SUCCESS);
  EXPECT_CU(cuMemMap(base + 2 * bytes, bytes, 0, chunk[0], 0), CUDA_SUCCESS);
  CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  EXPECT_CU(cuMemSetAccess(base, 3 * bytes, &access, 1), CUDA_SUCCESS);
  unsigned long long flags = 0;
  EXPECT_CU(cuMemGetAccess(&flags, &access.location, base), CUDA_SUCCESS);
  EXPECT_EQUAL(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);

  // The memory outlives its handles while it is mapped.
  CUmemGenericAllocationHandle again;
  EXPECT_CU(cuMemRetainAllocationHandle(&again, (void*)(base + 2 * bytes)), CUDA_SUCCESS);
  EXPECT_CU(cuMemRelease(again), CUDA_SUCCESS);
  CUmemAllocationProp found;
  EXPECT_CU(cuMemGetAllocationPropertiesFromHandle(&found, chunk[0]), CUDA_SUCCESS);
  EXPECT_EQUAL(found.location.id, 0);
  for (auto& one : chunk) EXPECT_CU(cuMemRelease(one), CUDA_SUCCESS);

  int* first = (int*)base;
  int* last = (int*)(base + 2 * bytes);
  fill<<<1, 256>>>(first, 100);
  int values[256];
  EXPECT_OK(cudaMemcpy(values, last, sizeof values, cudaMemcpyDefault));
  for (int at = 0; at < 256; ++at) EXPECT_EQUAL(values[at], 100 + at);

  // A copy over both chunks.
  int* plain;
  REQUIRE_OK(cudaMalloc(&plain, 2 * bytes));
  EXPECT_OK(cudaMemset(plain, 5, 2 * bytes));
  EXPECT_OK(cudaMemcpy(first, plain, 2 * bytes, cudaMemcpyDeviceToDevice));
  EXPECT_OK(cudaMemcpy(values, (char*)first + bytes - 512, sizeof values, cudaMemcpyDeviceToHost));
  EXPECT_EQUAL(values[0], 0x05050505);
  EXPECT_EQUAL(values[255], 0x05050505);

  // A kernel that waits sees what is written by the other address.
  EXPECT_OK(cudaMemset(first, 0, 4096));
  EXPECT_OK(cudaDeviceSynchronize());
  cudaStream_t waits, writes;
  REQUIRE_OK(cudaStreamCreateWithFlags(&waits, cudaStreamNonBlocking));
  REQUIRE_OK(cudaStreamCreateWithFlags(&writes, cudaStreamNonBlocking));
  wait_for<<<1, 1, 0, waits>>>(first, plain);
  raise<<<1, 1, 0, writes>>>(last);
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_OK(cudaMemcpy(values, plain, 4, cudaMemcpyDeviceToHost));
  EXPECT_EQUAL(values[0], 7);

  EXPECT_CU(cuMemUnmap(base, 3 * bytes), CUDA_SUCCESS);
  EXPECT_CU(cuMemAddressFree(base, 3 * bytes), CUDA_SUCCESS);
  EXPECT_OK(cudaFree(plain));
  return failures();
}
