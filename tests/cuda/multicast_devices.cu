// A multicast object over two devices of one process: multimem instructions reach both copies.

#include <cuda.h>

#include "check.h"

#define EXPECT_CU(call, expected) EXPECT_EQUAL((call), (expected))

__global__ void store(float* multicast, float value) {
#if __CUDA_ARCH__ >= 900
  asm volatile("multimem.st.weak.global.f32 [%0], %1;" ::"l"(multicast + threadIdx.x),
               "f"(value + threadIdx.x)
               : "memory");
#endif
}
__global__ void sum(const float* multicast, float* to) {
#if __CUDA_ARCH__ >= 900
  float value;
  asm volatile("multimem.ld_reduce.weak.global.add.f32 %0, [%1];"
               : "=f"(value)
               : "l"(multicast + threadIdx.x)
               : "memory");
  to[threadIdx.x] = value;
#endif
}

int main() {
  int count = 0, supported = 0;
  REQUIRE_OK(cudaGetDeviceCount(&count));
  REQUIRE_OK(cudaSetDevice(0));
  EXPECT_CU(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 0),
            CUDA_SUCCESS);
  if (count < 2 || !supported) return 77;
  REQUIRE_OK(cudaSetDevice(1));
  REQUIRE_OK(cudaFree(nullptr));
  REQUIRE_OK(cudaSetDevice(0));
  REQUIRE_OK(cudaFree(nullptr));

  CUmulticastObjectProp team = {};
  team.numDevices = 2;
  team.size = 1;
  size_t bytes = 0;
  EXPECT_CU(cuMulticastGetGranularity(&bytes, &team, CU_MULTICAST_GRANULARITY_MINIMUM),
            CUDA_SUCCESS);
  team.size = 2 * bytes;
  CUmemGenericAllocationHandle multicast;
  EXPECT_CU(cuMulticastCreate(&multicast, &team), CUDA_SUCCESS);
  EXPECT_CU(cuMulticastAddDevice(multicast, 0), CUDA_SUCCESS);
  EXPECT_CU(cuMulticastAddDevice(multicast, 1), CUDA_SUCCESS);

  CUmemGenericAllocationHandle memory[2];
  CUdeviceptr copy[2], base;
  CUmemAccessDesc access[2];
  for (int device = 0; device < 2; ++device) {
    access[device] = {{CU_MEM_LOCATION_TYPE_DEVICE, device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemAllocationProp prop = {};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location = access[device].location;
    EXPECT_CU(cuMemCreate(&memory[device], 2 * bytes, &prop, 0), CUDA_SUCCESS);
    EXPECT_CU(cuMemAddressReserve(&copy[device], 2 * bytes, 0, 0, 0), CUDA_SUCCESS);
    EXPECT_CU(cuMemMap(copy[device], 2 * bytes, 0, memory[device], 0), CUDA_SUCCESS);
    EXPECT_CU(cuMemSetAccess(copy[device], 2 * bytes, &access[device], 1), CUDA_SUCCESS);
    EXPECT_OK(cudaMemset((void*)copy[device], 0, 2 * bytes));
  }
  // The second half of the object stands for the first half of each memory.
  EXPECT_CU(cuMulticastBindMem(multicast, bytes, memory[0], 0, bytes, 0), CUDA_SUCCESS);
  EXPECT_CU(cuMulticastBindAddr(multicast, bytes, copy[1], bytes, 0), CUDA_SUCCESS);
  EXPECT_CU(cuMulticastBindMem(multicast, bytes, memory[0], bytes, bytes, 0),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemAddressReserve(&base, 2 * bytes, bytes, 0, 0), CUDA_SUCCESS);
  EXPECT_CU(cuMemMap(base, 2 * bytes, 0, multicast, 0), CUDA_SUCCESS);
  EXPECT_CU(cuMemSetAccess(base, 2 * bytes, access, 2), CUDA_SUCCESS);

  float* at = (float*)(base + bytes);
  store<<<1, 32>>>(at, 1.5f);
  REQUIRE_OK(cudaDeviceSynchronize());
  float values[32];
  for (CUdeviceptr one : copy) {
    EXPECT_OK(cudaMemcpy(values, (void*)one, sizeof values, cudaMemcpyDeviceToHost));
    for (int lane = 0; lane < 32; ++lane) EXPECT(values[lane] == 1.5f + lane);
  }
  float* result;
  REQUIRE_OK(cudaSetDevice(1));
  REQUIRE_OK(cudaMalloc(&result, sizeof values));
  sum<<<1, 32>>>(at, result);
  EXPECT_OK(cudaMemcpy(values, result, sizeof values, cudaMemcpyDeviceToHost));
  for (int lane = 0; lane < 32; ++lane) EXPECT(values[lane] == 2 * (1.5f + lane));

  EXPECT_CU(cuMulticastUnbind(multicast, 1, bytes, bytes), CUDA_SUCCESS);
  EXPECT_CU(cuMulticastUnbind(multicast, 0, bytes, bytes), CUDA_SUCCESS);
  EXPECT_CU(cuMemUnmap(base, 2 * bytes), CUDA_SUCCESS);
  EXPECT_CU(cuMemRelease(multicast), CUDA_SUCCESS);
  return failures();
}
