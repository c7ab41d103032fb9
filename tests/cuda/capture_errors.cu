// What a stream capture refuses, and that it stays refused until the capture ends.

#include "check.h"

__global__ void touch(int* value) { *value += 1; }

/// Ends a capture that something made invalid.
void expect_invalid(cudaStream_t stream) {
  cudaStreamCaptureStatus status;
  EXPECT_OK(cudaStreamIsCapturing(stream, &status));
  EXPECT_EQUAL(status, cudaStreamCaptureStatusInvalidated);
  cudaGraph_t graph = nullptr;
  EXPECT_ERROR(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT(graph == nullptr);
  EXPECT_OK(cudaStreamIsCapturing(stream, &status));
  EXPECT_EQUAL(status, cudaStreamCaptureStatusNone);
  cudaGetLastError();
}

void begin(cudaStream_t stream) {
  REQUIRE_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
}

int main() {
  int* value;
  cudaStream_t one, two;
  cudaEvent_t event;
  cudaGraph_t graph;
  REQUIRE_OK(cudaMalloc(&value, sizeof *value));
  REQUIRE_OK(cudaStreamCreate(&one));
  REQUIRE_OK(cudaStreamCreate(&two));
  REQUIRE_OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));

  EXPECT_ERROR(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal),
               cudaErrorStreamCaptureUnsupported);
  EXPECT_ERROR(cudaStreamEndCapture(one, &graph), cudaErrorIllegalState);

  begin(one);
  EXPECT_ERROR(cudaStreamSynchronize(one), cudaErrorStreamCaptureUnsupported);
  expect_invalid(one);

  begin(one);
  EXPECT_ERROR(cudaStreamQuery(one), cudaErrorStreamCaptureUnsupported);
  touch<<<1, 1, 0, one>>>(value);
  EXPECT_ERROR(cudaGetLastError(), cudaErrorStreamCaptureInvalidated);
  expect_invalid(one);

  // The legacy stream would have to wait for the captured one.
  begin(one);
  touch<<<1, 1>>>(value);
  EXPECT_ERROR(cudaGetLastError(), cudaErrorStreamCaptureImplicit);
  expect_invalid(one);

  // Work of another stream that is never joined.
  begin(one);
  REQUIRE_OK(cudaEventRecord(event, one));
  REQUIRE_OK(cudaStreamWaitEvent(two, event));
  touch<<<1, 1, 0, two>>>(value);
  EXPECT_ERROR(cudaStreamEndCapture(one, &graph), cudaErrorStreamCaptureUnjoined);
  EXPECT(graph == nullptr);
  cudaGetLastError();

  // An event from outside.
  REQUIRE_OK(cudaEventRecord(event, two));
  begin(one);
  EXPECT_ERROR(cudaStreamWaitEvent(one, event), cudaErrorStreamCaptureIsolation);
  expect_invalid(one);

  // Ended by a stream that only joined.
  begin(one);
  REQUIRE_OK(cudaEventRecord(event, one));
  REQUIRE_OK(cudaStreamWaitEvent(two, event));
  EXPECT_ERROR(cudaStreamEndCapture(two, &graph), cudaErrorStreamCaptureUnmatched);
  expect_invalid(one);

  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_OK(cudaFree(value));
  return failures();
}
