// Memory and a multicast object that two processes share by descriptors.

#include <cuda.h>
#include <fcntl.h>

#include "check.h"
#include "ranks.h"

#define EXPECT_CU(call, expected) EXPECT_EQUAL((call), (expected))

__global__ void fill(float* values, float start) { values[threadIdx.x] = start + threadIdx.x; }
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

CUdeviceptr map(CUmemGenericAllocationHandle handle, size_t bytes, int device) {
  CUdeviceptr base = 0;
  CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, device},
                            CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  EXPECT_CU(cuMemAddressReserve(&base, bytes, bytes, 0, 0), CUDA_SUCCESS);
  EXPECT_CU(cuMemMap(base, bytes, 0, handle, 0), CUDA_SUCCESS);
  EXPECT_CU(cuMemSetAccess(base, bytes, &access, 1), CUDA_SUCCESS);
  return base;
}

int main() {
  constexpr auto kType = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  Ranks ranks(2);
  int device = ranks.rank(), peer = 1 - device, count = 0, supported = 0;
  REQUIRE_OK(cudaGetDeviceCount(&count));
  REQUIRE_OK(cudaSetDevice(0));
  EXPECT_CU(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 0),
            CUDA_SUCCESS);
  if (count < 2 || !supported) return 77;
  REQUIRE_OK(cudaSetDevice(device));
  REQUIRE_OK(cudaFree(nullptr));

  CUmulticastObjectProp team = {};
  team.numDevices = 2;
  team.handleTypes = kType;
  size_t bytes = size_t{2} << 20;
  team.size = bytes;
  CUmemGenericAllocationHandle multicast, memory, theirs;
  int fd = -1, fds[2];
  if (ranks.rank() == 0) {
    EXPECT_CU(cuMulticastCreate(&multicast, &team), CUDA_SUCCESS);
    EXPECT_CU(cuMemExportToShareableHandle(&fd, multicast, kType, 0), CUDA_SUCCESS);
  } else {
    fd = open("/dev/null", O_RDONLY);
    EXPECT_CU(cuMemImportFromShareableHandle(&multicast, (void*)(intptr_t)fd, kType),
              CUDA_ERROR_INVALID_VALUE);
  }
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  prop.requestedHandleTypes = kType;
  EXPECT_CU(cuMemCreate(&memory, bytes, &prop, 0), CUDA_SUCCESS);
  int memory_fd = -1, memory_fds[2];
  EXPECT_CU(cuMemExportToShareableHandle(&memory_fd, memory, kType, 0), CUDA_SUCCESS);
  ranks.exchange_fds(memory_fd, memory_fds);
  ranks.exchange_fds(ranks.rank() == 0 ? fd : memory_fd, fds);
  if (ranks.rank() == 1) {
    EXPECT_CU(cuMemImportFromShareableHandle(&multicast, (void*)(intptr_t)fds[0], kType),
              CUDA_SUCCESS);
  }
  EXPECT_CU(cuMemImportFromShareableHandle(&theirs, (void*)(intptr_t)memory_fds[peer], kType),
            CUDA_SUCCESS);
  for (int one : fds) close(one);
  for (int one : memory_fds) close(one);
  close(fd);
  close(memory_fd);

  // Binding waits until both devices are in.
  EXPECT_CU(cuMulticastAddDevice(multicast, device), CUDA_SUCCESS);
  EXPECT_CU(cuMulticastBindMem(multicast, 0, memory, 0, bytes, 0), CUDA_SUCCESS);
  float* mine = (float*)map(memory, bytes, device);
  float* other = (float*)map(theirs, bytes, device);
  float* all = (float*)map(multicast, bytes, device);
  EXPECT_CU(cuMemRelease(theirs), CUDA_SUCCESS);
  EXPECT_CU(cuMemRelease(memory), CUDA_SUCCESS);

  // Each rank writes what the other one holds.
  fill<<<1, 32>>>(other, ranks.rank() == 0 ? 10.f : 200.f);
  REQUIRE_OK(cudaDeviceSynchronize());
  ranks.barrier();
  float* result;
  REQUIRE_OK(cudaMalloc(&result, 32 * sizeof(float)));
  sum<<<1, 32>>>(all, result);
  float values[32];
  EXPECT_OK(cudaMemcpy(values, result, sizeof values, cudaMemcpyDeviceToHost));
  for (int lane = 0; lane < 32; ++lane) EXPECT(values[lane] == 210.f + 2 * lane);
  EXPECT_OK(cudaMemcpy(values, mine, sizeof values, cudaMemcpyDeviceToHost));
  EXPECT(values[1] == (ranks.rank() == 0 ? 201.f : 11.f));
  ranks.barrier();
  return ranks.finish(failures());
}
