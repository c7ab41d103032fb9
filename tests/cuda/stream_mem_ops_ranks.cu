// Two processes hand a token to and fro with stream memory operations alone: each stream waits for
// its own word and writes the other's, which cudaIpc shares. No kernel polls, no host waits.

#include <cuda.h>

#include "check.h"
#include "ranks.h"

#define EXPECT_CU(call, expected) EXPECT_EQUAL((call), (expected))

__global__ void count(int* counter) { *counter += 1; }

int main() {
  Ranks ranks(2);
  constexpr unsigned kRounds = 10;
  int num_devices = 0;
  REQUIRE_OK(cudaGetDeviceCount(&num_devices));
  REQUIRE_OK(cudaSetDevice(ranks.rank() % num_devices));
  cudaStream_t stream;
  REQUIRE_OK(cudaStreamCreate(&stream));
  unsigned* mine;
  int* counter;
  REQUIRE_OK(cudaMalloc(&mine, sizeof(unsigned)));
  REQUIRE_OK(cudaMalloc(&counter, sizeof(int)));
  REQUIRE_OK(cudaMemset(mine, 0, sizeof(unsigned)));
  REQUIRE_OK(cudaMemset(counter, 0, sizeof(int)));
  REQUIRE_OK(cudaDeviceSynchronize());
  cudaIpcMemHandle_t handle, handles[2];
  REQUIRE_OK(cudaIpcGetMemHandle(&handle, mine));
  ranks.allgather(&handle, handles, sizeof handle);
  void* theirs = nullptr;
  REQUIRE_OK(
      cudaIpcOpenMemHandle(&theirs, handles[1 - ranks.rank()], cudaIpcMemLazyEnablePeerAccess));

  for (unsigned round = 1; round <= kRounds; ++round) {
    // Rank 0 begins every round, rank 1 answers.
    if (ranks.rank() == 1) {
      EXPECT_CU(cuStreamWaitValue32(stream, (CUdeviceptr)mine, round, CU_STREAM_WAIT_VALUE_GEQ),
                CUDA_SUCCESS);
    }
    count<<<1, 1, 0, stream>>>(counter);
    EXPECT_CU(cuStreamWriteValue32(stream, (CUdeviceptr)theirs, round, 0), CUDA_SUCCESS);
    if (ranks.rank() == 0) {
      EXPECT_CU(cuStreamWaitValue32(stream, (CUdeviceptr)mine, round, CU_STREAM_WAIT_VALUE_GEQ),
                CUDA_SUCCESS);
    }
  }
  EXPECT_OK(cudaStreamSynchronize(stream));
  int counted = 0;
  unsigned last = 0;
  EXPECT_OK(cudaMemcpy(&counted, counter, sizeof counted, cudaMemcpyDeviceToHost));
  EXPECT_OK(cudaMemcpy(&last, mine, sizeof last, cudaMemcpyDeviceToHost));
  EXPECT_EQUAL(counted, kRounds);
  EXPECT_EQUAL(last, kRounds);
  ranks.barrier();
  EXPECT_OK(cudaIpcCloseMemHandle(theirs));
  ranks.barrier();
  EXPECT_OK(cudaFree(mine));
  EXPECT_OK(cudaFree(counter));
  return ranks.finish(failures());
}
