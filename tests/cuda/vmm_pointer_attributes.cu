// What pointer attributes say of mapped, pooled and plain device memory: ranges, handle types,
// whether cudaIpc knows it, and CU_POINTER_ATTRIBUTE_SYNC_MEMOPS.

#include <cuda.h>

#include "check.h"

#define EXPECT_CU(call, expected) EXPECT_EQUAL((call), (expected))

namespace {

template <class Value>
Value get(CUpointer_attribute attribute, CUdeviceptr address) {
  Value value = {};
  EXPECT_CU(cuPointerGetAttribute(&value, attribute, address), CUDA_SUCCESS);
  return value;
}

void check_mapped() {
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  size_t bytes = 0;
  EXPECT_CU(cuMemGetAllocationGranularity(&bytes, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
            CUDA_SUCCESS);
  CUmemGenericAllocationHandle handle;
  CUdeviceptr base = 0;
  EXPECT_CU(cuMemCreate(&handle, bytes, &prop, 0), CUDA_SUCCESS);
  EXPECT_CU(cuMemAddressReserve(&base, bytes, 0, 0, 0), CUDA_SUCCESS);
  EXPECT_CU(cuMemMap(base, bytes, 0, handle, 0), CUDA_SUCCESS);
  CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  EXPECT_CU(cuMemSetAccess(base, bytes, &access, 1), CUDA_SUCCESS);
  CUdeviceptr inside = base + 1000;
  EXPECT(get<CUdeviceptr>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, inside) == base);
  EXPECT_EQUAL(get<size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, inside), bytes);
  EXPECT_EQUAL(get<unsigned>(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, inside) & 1, 0);
  EXPECT_EQUAL(get<unsigned long long>(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, inside),
               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  EXPECT_CU(cuMemUnmap(base, bytes), CUDA_SUCCESS);
  EXPECT_CU(cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_CU(cuMemAddressFree(base, bytes), CUDA_SUCCESS);
}

}  // namespace

int main() {
  REQUIRE_OK(cudaSetDevice(0));
  check_mapped();
  char *plain, *pooled;
  REQUIRE_OK(cudaMalloc(&plain, 5000));
  auto address = reinterpret_cast<CUdeviceptr>(plain);
  EXPECT_EQUAL(get<unsigned>(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, address) & 1, 1);
  EXPECT_EQUAL(get<unsigned>(CU_POINTER_ATTRIBUTE_IS_MANAGED, address) & 1, 0);
  REQUIRE_OK(cudaMallocAsync(&pooled, 5000, nullptr));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_EQUAL(get<unsigned>(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
                             reinterpret_cast<CUdeviceptr>(pooled)) &
                   1,
               0);

  cudaMemPool_t pool;
  EXPECT_OK(cudaDeviceGetDefaultMemPool(&pool, 0));
  EXPECT(get<cudaMemPool_t>(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
                            reinterpret_cast<CUdeviceptr>(pooled)) == pool);
  EXPECT(get<cudaMemPool_t>(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address) == nullptr);

  unsigned on = 1;
  EXPECT_CU(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address), CUDA_SUCCESS);
  EXPECT_EQUAL(get<unsigned>(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address) & 1, 1);
  EXPECT_CU(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_IS_MANAGED, address),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(cudaMemset(plain, 3, 5000));
  EXPECT_OK(cudaFree(pooled));
  EXPECT_OK(cudaFree(plain));
  return failures();
}
