// Order of work in streams, and how the legacy default stream orders the others.

#include "check.h"

/// Writes `value` after a while.
__global__ void slow_write(volatile int* target, int value) {
  long long start = clock64();
  while (clock64() - start < 200'000) {
  }
  *target = value;
}

__global__ void copy_value(const volatile int* source, volatile int* target) { *target = *source; }

int read_value(const int* device) {
  int value = -1;
  EXPECT_OK(cudaMemcpy(&value, device, sizeof value, cudaMemcpyDeviceToHost));
  return value;
}

/// What can be asked about streams.
void check_attributes(cudaStream_t blocking, cudaStream_t other, cudaStream_t independent) {
  unsigned flags = 99;
  int priority = 99, device = -1;
  unsigned long long first_id = 0, second_id = 0;
  EXPECT_OK(cudaStreamGetFlags(independent, &flags));
  EXPECT_EQUAL(flags, cudaStreamNonBlocking);
  EXPECT_OK(cudaStreamGetPriority(blocking, &priority));
  EXPECT_EQUAL(priority, 0);
  EXPECT_OK(cudaStreamGetDevice(blocking, &device));
  EXPECT_EQUAL(device, 0);
  EXPECT_OK(cudaStreamGetId(blocking, &first_id));
  EXPECT_OK(cudaStreamGetId(other, &second_id));
  EXPECT(first_id != second_id);
  cudaStream_t urgent;
  EXPECT_OK(cudaStreamCreateWithPriority(&urgent, cudaStreamNonBlocking, -100));
  EXPECT_OK(cudaStreamGetPriority(urgent, &priority));
  int least, greatest;
  EXPECT_OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  EXPECT_EQUAL(priority, greatest);
}

int main() {
  int *a, *b;
  REQUIRE_OK(cudaMalloc(&a, sizeof(int)));
  REQUIRE_OK(cudaMalloc(&b, sizeof(int)));
  cudaStream_t blocking, other, independent;
  REQUIRE_OK(cudaStreamCreate(&blocking));
  REQUIRE_OK(cudaStreamCreate(&other));
  REQUIRE_OK(cudaStreamCreateWithFlags(&independent, cudaStreamNonBlocking));

  auto reset = [&] {
    REQUIRE_OK(cudaDeviceSynchronize());
    REQUIRE_OK(cudaMemset(a, 0, sizeof(int)));
    REQUIRE_OK(cudaMemset(b, 0, sizeof(int)));
    REQUIRE_OK(cudaDeviceSynchronize());
  };

  reset();
  slow_write<<<1, 1, 0, independent>>>(a, 1);
  copy_value<<<1, 1, 0, independent>>>(a, b);
  EXPECT_OK(cudaStreamSynchronize(independent));
  EXPECT_EQUAL(read_value(b), 1);

  // Work in a blocking stream is over before the default stream goes on, and the other way round.
  reset();
  slow_write<<<1, 1, 0, blocking>>>(a, 2);
  copy_value<<<1, 1>>>(a, b);
  EXPECT_OK(cudaStreamSynchronize(cudaStreamLegacy));
  EXPECT_EQUAL(read_value(b), 2);
  reset();
  slow_write<<<1, 1>>>(a, 3);
  copy_value<<<1, 1, 0, blocking>>>(a, b);
  EXPECT_OK(cudaStreamSynchronize(blocking));
  EXPECT_EQUAL(read_value(b), 3);

  // A non-blocking stream does not wait for the default stream.
  reset();
  slow_write<<<1, 1>>>(a, 4);
  copy_value<<<1, 1, 0, independent>>>(a, b);
  EXPECT_OK(cudaStreamSynchronize(independent));
  EXPECT_ERROR(cudaStreamQuery(0), cudaErrorNotReady);
  EXPECT_EQUAL(read_value(b), 0);

  // An event orders two streams that nothing else orders.
  reset();
  cudaEvent_t event;
  REQUIRE_OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  slow_write<<<1, 1, 0, blocking>>>(a, 5);
  EXPECT_OK(cudaEventRecord(event, blocking));
  EXPECT_OK(cudaStreamWaitEvent(other, event, 0));
  copy_value<<<1, 1, 0, other>>>(a, b);
  EXPECT_OK(cudaStreamSynchronize(other));
  EXPECT_EQUAL(read_value(b), 5);

  reset();
  EXPECT_OK(cudaStreamQuery(blocking));
  slow_write<<<1, 1, 0, blocking>>>(a, 6);
  EXPECT_ERROR(cudaStreamQuery(blocking), cudaErrorNotReady);
  EXPECT_OK(cudaStreamSynchronize(blocking));
  EXPECT_OK(cudaStreamQuery(blocking));
  cudaGetLastError();

  check_attributes(blocking, other, independent);
  cudaStream_t refused;
  EXPECT_ERROR(cudaStreamCreateWithFlags(&refused, 0x80), cudaErrorInvalidValue);
  EXPECT_ERROR(cudaStreamDestroy(0), cudaErrorInvalidResourceHandle);
  cudaGetLastError();
  EXPECT_OK(cudaStreamDestroy(blocking));
  EXPECT_OK(cudaStreamDestroy(other));
  EXPECT_OK(cudaStreamDestroy(independent));
  EXPECT_OK(cudaEventDestroy(event));
  return failures();
}
