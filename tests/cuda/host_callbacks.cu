// Host functions and callbacks in streams: their order among kernels and copies, what they may do,
// and what a callback learns of an error.

#include <atomic>
#include <cstring>

#include "check.h"

__global__ void add_one(int* value) { *value += 1; }
__global__ void wait_for(volatile int* flag, int* out) {
  while (*flag == 0) {
  }
  *out = *flag;
}

namespace {

struct Step {
  int* pinned;
  int seen;
  int order;
  cudaError_t inside;
};
std::atomic<int> num_called{0};

void look(void* data) {
  auto* step = static_cast<Step*>(data);
  step->seen = *step->pinned;
  step->order = num_called++;
  *step->pinned += 10;
}

void call_cuda(void* data) {
  auto* step = static_cast<Step*>(data);
  void* memory = nullptr;
  step->inside = cudaMalloc(&memory, 16);
}

void set_flag(void* data) { *static_cast<volatile int*>(data) = 7; }

struct Told {
  cudaStream_t stream;
  cudaError_t status;
  int calls;
};
void CUDART_CB tell(cudaStream_t stream, cudaError_t status, void* data) {
  auto* told = static_cast<Told*>(data);
  told->stream = stream;
  told->status = status;
  ++told->calls;
}

}  // namespace

int main() {
  cudaStream_t stream, other;
  REQUIRE_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  REQUIRE_OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  int *pinned, *device;
  REQUIRE_OK(cudaHostAlloc(&pinned, 2 * sizeof(int), cudaHostAllocMapped));
  REQUIRE_OK(cudaMalloc(&device, sizeof(int)));

  // Between kernels of one stream: each sees what came before, and what comes after sees it.
  memset(pinned, 0, 2 * sizeof(int));
  Step steps[3] = {};
  for (Step& step : steps) {
    step.pinned = pinned;
    add_one<<<1, 1, 0, stream>>>(pinned);
    EXPECT_OK(cudaLaunchHostFunc(stream, look, &step));
  }
  add_one<<<1, 1, 0, stream>>>(pinned);
  EXPECT_OK(cudaStreamSynchronize(stream));
  for (int at = 0; at < 3; ++at) {
    EXPECT_EQUAL(steps[at].seen, 11 * at + 1);
    EXPECT_EQUAL(steps[at].order, at);
  }
  EXPECT_EQUAL(*pinned, 34);

  // A function of one stream lets a kernel of another go on.
  pinned[0] = pinned[1] = 0;
  wait_for<<<1, 1, 0, other>>>(pinned, pinned + 1);
  EXPECT_OK(cudaLaunchHostFunc(stream, set_flag, pinned));
  EXPECT_OK(cudaStreamSynchronize(other));
  EXPECT_EQUAL(pinned[1], 7);

  // An event after a function has not happened before it.
  cudaEvent_t event;
  REQUIRE_OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  pinned[0] = 5;
  steps[0].seen = 0;
  EXPECT_OK(cudaLaunchHostFunc(stream, look, &steps[0]));
  EXPECT_OK(cudaEventRecord(event, stream));
  EXPECT_OK(cudaStreamWaitEvent(other, event, 0));
  EXPECT_OK(cudaMemcpyAsync(device, pinned, sizeof(int), cudaMemcpyHostToDevice, other));
  int copied = 0;
  EXPECT_OK(cudaStreamSynchronize(other));
  EXPECT_OK(cudaMemcpy(&copied, device, sizeof(int), cudaMemcpyDeviceToHost));
  EXPECT_EQUAL(copied, 15);

  // CUDA may not be called in a function. (It may also return success: CUDA promises neither.)
  EXPECT_OK(cudaLaunchHostFunc(stream, call_cuda, &steps[0]));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT_ERROR(steps[0].inside, cudaErrorNotPermitted);
  EXPECT_OK(cudaGetLastError());

  Told told = {};
  EXPECT_OK(cudaStreamAddCallback(stream, tell, &told, 0));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT(told.stream == stream);
  EXPECT_EQUAL(told.status, cudaSuccess);
  EXPECT_EQUAL(told.calls, 1);
  EXPECT_OK(cudaStreamAddCallback(nullptr, tell, &told, 0));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(told.stream == nullptr);

  EXPECT_ERROR(cudaStreamAddCallback(stream, tell, &told, 1), cudaErrorInvalidValue);
  EXPECT_ERROR(cudaStreamAddCallback(stream, nullptr, &told, 0), cudaErrorInvalidValue);
  EXPECT_ERROR(cudaLaunchHostFunc(stream, nullptr, &told), cudaErrorInvalidValue);
  cudaGetLastError();
  EXPECT_OK(cudaEventDestroy(event));
  EXPECT_OK(cudaStreamDestroy(stream));
  EXPECT_OK(cudaStreamDestroy(other));
  return failures();
}
