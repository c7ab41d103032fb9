// Stream capture: what is captured does not run, and runs as often as its graph is launched, on
// streams that fork and join; new parameters by an update.

#include "check.h"

__global__ void add(int* values, int amount) { values[threadIdx.x] += amount; }
__global__ void multiply(int* values, int factor) { values[threadIdx.x] *= factor; }
__global__ void sum(int* out, const int* a, const int* b) {
  out[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x];
}

constexpr int kCount = 64;
constexpr size_t kBytes = kCount * sizeof(int);

int first_of(const int* device) {
  int host[kCount];
  REQUIRE_OK(cudaMemcpy(host, device, kBytes, cudaMemcpyDeviceToHost));
  for (int at = 1; at < kCount; ++at) EXPECT_EQUAL(host[at], host[0]);
  return host[0];
}

/// values = 5, then other = values * 3 beside values = values + amount, then out = both.
cudaGraph_t capture(cudaStream_t one, cudaStream_t two, int* values, int* other, int* out,
                    int amount) {
  cudaEvent_t fork, join;
  REQUIRE_OK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  REQUIRE_OK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  REQUIRE_OK(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
  REQUIRE_OK(cudaMemsetAsync(values, 0, kBytes, one));
  add<<<1, kCount, 0, one>>>(values, 5);
  REQUIRE_OK(cudaMemcpyAsync(other, values, kBytes, cudaMemcpyDeviceToDevice, one));
  REQUIRE_OK(cudaEventRecord(fork, one));
  REQUIRE_OK(cudaStreamWaitEvent(two, fork));
  multiply<<<1, kCount, 0, two>>>(other, 3);
  add<<<1, kCount, 0, one>>>(values, amount);
  REQUIRE_OK(cudaEventRecord(join, two));
  REQUIRE_OK(cudaStreamWaitEvent(one, join));
  sum<<<1, kCount, 0, one>>>(out, values, other);
  cudaStreamCaptureStatus status;
  REQUIRE_OK(cudaStreamIsCapturing(two, &status));
  EXPECT_EQUAL(status, cudaStreamCaptureStatusActive);
  EXPECT_ERROR(cudaEventQuery(join), cudaErrorCapturedEvent);
  cudaGraph_t graph;
  REQUIRE_OK(cudaStreamEndCapture(one, &graph));
  REQUIRE_OK(cudaStreamIsCapturing(two, &status));
  EXPECT_EQUAL(status, cudaStreamCaptureStatusNone);
  EXPECT_OK(cudaEventDestroy(fork));
  EXPECT_OK(cudaEventDestroy(join));
  return graph;
}

int main() {
  int *values, *other, *out;
  cudaStream_t one, two;
  REQUIRE_OK(cudaMalloc(&values, kBytes));
  REQUIRE_OK(cudaMalloc(&other, kBytes));
  REQUIRE_OK(cudaMalloc(&out, kBytes));
  REQUIRE_OK(cudaMemset(out, 0, kBytes));
  REQUIRE_OK(cudaStreamCreate(&one));
  REQUIRE_OK(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));

  cudaGraph_t graph = capture(one, two, values, other, out, 7);
  EXPECT_EQUAL(first_of(out), 0);
  size_t nodes = 0;
  EXPECT_OK(cudaGraphGetNodes(graph, nullptr, &nodes));
  EXPECT_EQUAL(nodes, 6);
  cudaGraphExec_t exec;
  REQUIRE_OK(cudaGraphInstantiate(&exec, graph, 0));
  for (int launch = 0; launch < 3; ++launch) EXPECT_OK(cudaGraphLaunch(exec, one));
  REQUIRE_OK(cudaStreamSynchronize(one));
  EXPECT_EQUAL(first_of(out), 5 + 7 + 15);

  // In another stream, after the launches before it.
  add<<<1, kCount, 0, one>>>(out, 1000);
  EXPECT_OK(cudaGraphLaunch(exec, two));
  REQUIRE_OK(cudaStreamSynchronize(two));
  REQUIRE_OK(cudaDeviceSynchronize());
  EXPECT_EQUAL(first_of(out) % 1000, 5 + 7 + 15);

  cudaGraph_t changed = capture(one, two, values, other, out, 100);
  cudaGraphExecUpdateResultInfo info;
  EXPECT_OK(cudaGraphExecUpdate(exec, changed, &info));
  EXPECT_EQUAL(info.result, cudaGraphExecUpdateSuccess);
  EXPECT_OK(cudaGraphDestroy(changed));
  EXPECT_OK(cudaGraphLaunch(exec, one));
  REQUIRE_OK(cudaStreamSynchronize(one));
  EXPECT_EQUAL(first_of(out), 5 + 100 + 15);

  REQUIRE_OK(cudaStreamBeginCapture(one, cudaStreamCaptureModeThreadLocal));
  add<<<1, kCount, 0, one>>>(values, 1);
  REQUIRE_OK(cudaStreamEndCapture(one, &changed));
  EXPECT_ERROR(cudaGraphExecUpdate(exec, changed, &info), cudaErrorGraphExecUpdateFailure);
  cudaGetLastError();
  EXPECT_OK(cudaGraphDestroy(changed));
  EXPECT_OK(cudaGraphDestroy(graph));
  EXPECT_OK(cudaGraphLaunch(exec, one));
  REQUIRE_OK(cudaStreamSynchronize(one));
  EXPECT_EQUAL(first_of(out), 5 + 100 + 15);
  EXPECT_OK(cudaGraphExecDestroy(exec));
  return failures();
}
