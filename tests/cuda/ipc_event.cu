// An event of one process that orders work of another.

#include "check.h"
#include "ranks.h"

__global__ void slow_write(volatile int* target, int value) {
  long long start = clock64();
  while (clock64() - start < 2'000'000) {
  }
  *target = value;
}
__global__ void copy_value(const volatile int* from, int* to) { *to = *from; }

int main() {
  Ranks ranks(2);
  int count = 0;
  REQUIRE_OK(cudaGetDeviceCount(&count));
  REQUIRE_OK(cudaSetDevice(ranks.rank() % count));
  struct Handles {
    cudaIpcMemHandle_t memory;
    cudaIpcEventHandle_t event;
  };
  Handles mine = {}, all[2];
  int* memory;
  cudaEvent_t event;
  REQUIRE_OK(cudaMalloc(&memory, sizeof(int)));
  REQUIRE_OK(cudaMemset(memory, 0, sizeof(int)));
  REQUIRE_OK(cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming));
  REQUIRE_OK(cudaIpcGetMemHandle(&mine.memory, memory));
  REQUIRE_OK(cudaIpcGetEventHandle(&mine.event, event));
  cudaEvent_t plain;
  REQUIRE_OK(cudaEventCreate(&plain));
  cudaIpcEventHandle_t unused;
  EXPECT(cudaIpcGetEventHandle(&unused, plain) != cudaSuccess);
  cudaGetLastError();
  ranks.allgather(&mine, all, sizeof mine);

  if (ranks.rank() == 0) {
    slow_write<<<1, 1>>>(memory, 77);
    REQUIRE_OK(cudaEventRecord(event));
    ranks.barrier();
    EXPECT_OK(cudaDeviceSynchronize());
    ranks.barrier();
  } else {
    void* theirs = nullptr;
    cudaEvent_t their_event;
    REQUIRE_OK(cudaIpcOpenMemHandle(&theirs, all[0].memory, cudaIpcMemLazyEnablePeerAccess));
    REQUIRE_OK(cudaIpcOpenEventHandle(&their_event, all[0].event));
    ranks.barrier();
    REQUIRE_OK(cudaStreamWaitEvent(0, their_event, 0));
    copy_value<<<1, 1>>>(static_cast<int*>(theirs), memory);
    int value = 0;
    REQUIRE_OK(cudaMemcpy(&value, memory, sizeof value, cudaMemcpyDeviceToHost));
    EXPECT_EQUAL(value, 77);
    EXPECT_OK(cudaEventSynchronize(their_event));
    EXPECT_OK(cudaEventQuery(their_event));
    EXPECT_OK(cudaEventDestroy(their_event));
    EXPECT_OK(cudaIpcCloseMemHandle(theirs));
    ranks.barrier();
  }
  EXPECT_OK(cudaEventDestroy(event));
  EXPECT_OK(cudaFree(memory));
  return ranks.finish(failures());
}
