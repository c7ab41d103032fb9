// Events: order, elapsed time, queries, flags, and what is refused.

#include "check.h"

__global__ void spin(long long cycles) {
  long long start = clock64();
  while (clock64() - start < cycles) {
  }
}

int main() {
  cudaEvent_t start, middle, end, untimed, unused;
  REQUIRE_OK(cudaEventCreate(&start));
  REQUIRE_OK(cudaEventCreate(&middle));
  REQUIRE_OK(cudaEventCreateWithFlags(&end, cudaEventBlockingSync));
  REQUIRE_OK(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
  REQUIRE_OK(cudaEventCreate(&unused));
  cudaStream_t stream;
  REQUIRE_OK(cudaStreamCreate(&stream));
  spin<<<1, 1, 0, stream>>>(1000);
  REQUIRE_OK(cudaStreamSynchronize(stream));

  EXPECT_OK(cudaEventQuery(unused));
  EXPECT_OK(cudaEventSynchronize(unused));

  EXPECT_OK(cudaEventRecord(start, stream));
  spin<<<1, 1, 0, stream>>>(2'000'000);
  EXPECT_OK(cudaEventRecord(middle, stream));
  spin<<<1, 1, 0, stream>>>(6'000'000);
  EXPECT_OK(cudaEventRecord(end, stream));
  EXPECT_OK(cudaEventRecord(untimed, stream));
  EXPECT_ERROR(cudaEventQuery(end), cudaErrorNotReady);
  float ms = -1;
  EXPECT_ERROR(cudaEventElapsedTime(&ms, start, end), cudaErrorNotReady);
  EXPECT_OK(cudaEventSynchronize(middle));
  EXPECT_OK(cudaEventQuery(middle));
  EXPECT_OK(cudaEventSynchronize(end));

  float first = 0, second = 0, both = 0;
  EXPECT_OK(cudaEventElapsedTime(&first, start, middle));
  EXPECT_OK(cudaEventElapsedTime(&second, middle, end));
  EXPECT_OK(cudaEventElapsedTime(&both, start, end));
  EXPECT(first > 0);
  EXPECT(second > 2 * first && second < 4 * first);
  EXPECT(both > 0.98f * (first + second) && both < 1.02f * (first + second));
  float backwards = 0;
  EXPECT_OK(cudaEventElapsedTime(&backwards, end, start));
  EXPECT(backwards < 0);

  EXPECT_ERROR(cudaEventElapsedTime(&ms, start, untimed), cudaErrorInvalidResourceHandle);
  EXPECT_ERROR(cudaEventElapsedTime(&ms, unused, end), cudaErrorInvalidResourceHandle);
  EXPECT_ERROR(cudaEventCreateWithFlags(&unused, 0x40), cudaErrorInvalidValue);
  EXPECT_ERROR(cudaEventCreateWithFlags(&unused, cudaEventInterprocess), cudaErrorInvalidValue);
  cudaGetLastError();
  for (cudaEvent_t event : {start, middle, end, untimed}) EXPECT_OK(cudaEventDestroy(event));
  EXPECT_OK(cudaStreamDestroy(stream));
  return failures();
}
