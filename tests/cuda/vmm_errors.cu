// What virtual memory management refuses, and that memory without access rights is out of reach.

#include <cuda.h>

#include "check.h"

#define EXPECT_CU(call, expected) EXPECT_EQUAL((call), (expected))

__global__ void read(const int* from, int* to) { *to = *from; }

int main() {
  REQUIRE_OK(cudaSetDevice(0));
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  size_t bytes = 0;
  EXPECT_CU(cuMemGetAllocationGranularity(&bytes, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
            CUDA_SUCCESS);
  CUmemGenericAllocationHandle handle;
  EXPECT_CU(cuMemCreate(&handle, bytes + 1, &prop, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemCreate(&handle, 0, &prop, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemCreate(&handle, 2 * bytes, &prop, 0), CUDA_SUCCESS);
  CUdeviceptr base = 0;
  EXPECT_CU(cuMemAddressReserve(&base, 100, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemAddressReserve(&base, bytes, 3 * bytes, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemAddressReserve(&base, 4 * bytes, 0, 0, 0), CUDA_SUCCESS);

  EXPECT_CU(cuMemMap(base, 4 * bytes, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemMap(base + 3 * bytes, 2 * bytes, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemMap(base, 2 * bytes, 0, handle, 0), CUDA_SUCCESS);
  EXPECT_CU(cuMemMap(base + bytes, bytes, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemUnmap(base, bytes), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemAddressFree(base, 4 * bytes), CUDA_ERROR_INVALID_VALUE);
  CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  EXPECT_CU(cuMemSetAccess(base, 4 * bytes, &access, 1), CUDA_ERROR_INVALID_VALUE);

  // Memory that was not asked to be shareable is not; it is not known to cudaIpc either.
  int fd = -1;
  EXPECT_CU(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemSetAccess(base, 2 * bytes, &access, 1), CUDA_SUCCESS);
  cudaIpcMemHandle_t ipc;
  EXPECT_ERROR(cudaIpcGetMemHandle(&ipc, (void*)base), cudaErrorInvalidValue);
  cudaGetLastError();

  EXPECT_CU(cuMemUnmap(base, 2 * bytes), CUDA_SUCCESS);
  EXPECT_CU(cuMemRelease(handle), CUDA_SUCCESS);

  // A mapping starts without rights, whatever was granted at this address before.
  EXPECT_CU(cuMemCreate(&handle, bytes, &prop, 0), CUDA_SUCCESS);
  EXPECT_CU(cuMemMap(base, bytes, 0, handle, 0), CUDA_SUCCESS);
  int* plain;
  REQUIRE_OK(cudaMalloc(&plain, 4));
  read<<<1, 1>>>((int*)base, plain);
  EXPECT_ERROR(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  return failures();
}
