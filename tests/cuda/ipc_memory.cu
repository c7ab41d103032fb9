// Device memory shared between two processes on two devices (or on one, if there is one).

#include "check.h"
#include "ranks.h"

__global__ void fill(int* values, int start) { values[threadIdx.x] = start + threadIdx.x; }
__global__ void add(const int* from, int* to) { to[threadIdx.x] += from[threadIdx.x]; }

int main() {
  Ranks ranks(2);
  int count = 0;
  REQUIRE_OK(cudaGetDeviceCount(&count));
  REQUIRE_OK(cudaSetDevice(ranks.rank() % count));
  int* mine;
  REQUIRE_OK(cudaMalloc(&mine, 256 * sizeof(int)));
  fill<<<1, 256>>>(mine, ranks.rank() == 0 ? 1000 : 5);
  REQUIRE_OK(cudaDeviceSynchronize());

  cudaIpcMemHandle_t handle, handles[2];
  REQUIRE_OK(cudaIpcGetMemHandle(&handle, mine));
  ranks.allgather(&handle, handles, sizeof handle);

  void* opened = nullptr;
  EXPECT_ERROR(cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess),
               cudaErrorDeviceUninitialized);
  EXPECT_ERROR(cudaIpcOpenMemHandle(&opened, handles[1 - ranks.rank()], 0), cudaErrorInvalidValue);
  cudaGetLastError();
  REQUIRE_OK(
      cudaIpcOpenMemHandle(&opened, handles[1 - ranks.rank()], cudaIpcMemLazyEnablePeerAccess));
  void* again = nullptr;
  EXPECT_OK(
      cudaIpcOpenMemHandle(&again, handles[1 - ranks.rank()], cudaIpcMemLazyEnablePeerAccess));
  EXPECT(again == opened);
  EXPECT_OK(cudaIpcCloseMemHandle(again));

  cudaPointerAttributes attributes;
  EXPECT_OK(cudaPointerGetAttributes(&attributes, opened));
  EXPECT_EQUAL(attributes.type, cudaMemoryTypeDevice);

  // Each rank in turn adds its own values to the other's memory.
  auto* theirs = static_cast<int*>(opened);
  for (int turn = 0; turn < 2; ++turn) {
    if (turn == ranks.rank()) {
      add<<<1, 256>>>(mine, theirs);
      REQUIRE_OK(cudaDeviceSynchronize());
    }
    ranks.barrier();
  }
  int results[256];
  REQUIRE_OK(cudaMemcpy(results, mine, sizeof results, cudaMemcpyDeviceToHost));
  int first = ranks.rank() == 0 ? 1000 + 1005 : 1005;
  int step = ranks.rank() == 0 ? 3 : 2;
  bool right = true;
  for (int at = 0; at < 256; ++at) right = right && results[at] == first + step * at;
  EXPECT(right);

  EXPECT_OK(cudaIpcCloseMemHandle(opened));
  EXPECT_ERROR(cudaIpcCloseMemHandle(mine), cudaErrorInvalidValue);
  cudaGetLastError();
  ranks.barrier();
  EXPECT_OK(cudaFree(mine));
  return ranks.finish(failures());
}
