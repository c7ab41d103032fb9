// Compiled with --default-stream per-thread: a null stream is the calling thread's own.

#include <thread>

#include "check.h"

__global__ void slow_write(volatile int* target, int value) {
  long long start = clock64();
  while (clock64() - start < 2'000'000) {
  }
  *target = value;
}
__global__ void copy_value(const volatile int* from, int* to) { *to = *from; }

int main() {
  int *a, *b, value = -1;
  REQUIRE_OK(cudaMalloc(&a, sizeof(int)));
  REQUIRE_OK(cudaMalloc(&b, sizeof(int)));
  REQUIRE_OK(cudaMemset(a, 0, sizeof(int)));
  REQUIRE_OK(cudaMemset(b, 0, sizeof(int)));
  REQUIRE_OK(cudaDeviceSynchronize());
  slow_write<<<1, 1>>>(a, 9);
  cudaError_t error = cudaErrorUnknown;
  std::thread other([&] {
    // Not ordered after the main thread's kernel.
    copy_value<<<1, 1>>>(a, b);
    error = cudaMemcpy(&value, b, sizeof value, cudaMemcpyDeviceToHost);
  });
  other.join();
  EXPECT_OK(error);
  EXPECT_EQUAL(value, 0);
  EXPECT_OK(cudaStreamSynchronize(0));
  copy_value<<<1, 1>>>(a, b);
  EXPECT_OK(cudaMemcpy(&value, b, sizeof value, cudaMemcpyDeviceToHost));
  EXPECT_EQUAL(value, 9);
  EXPECT_OK(cudaFree(a));
  EXPECT_OK(cudaFree(b));
  return failures();
}
