// A failed assert in device code: its message, the error, and that it stays.

#include <cassert>

#include "check.h"

__global__ void check_positive(const int* value) { assert(*value > 0); }

int main() {
  int *device, value = 1;
  REQUIRE_OK(cudaMalloc(&device, sizeof value));
  REQUIRE_OK(cudaMemcpy(device, &value, sizeof value, cudaMemcpyHostToDevice));
  check_positive<<<1, 32>>>(device);
  EXPECT_OK(cudaDeviceSynchronize());
  value = -1;
  REQUIRE_OK(cudaMemcpy(device, &value, sizeof value, cudaMemcpyHostToDevice));
  check_positive<<<1, 32>>>(device);
  EXPECT_ERROR(cudaDeviceSynchronize(), cudaErrorAssert);
  EXPECT_ERROR(cudaGetLastError(), cudaErrorAssert);
  return failures();
}
