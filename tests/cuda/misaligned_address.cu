// An access that is not aligned breaks the context.

#include "check.h"

__global__ void write_askew(char* base) { *reinterpret_cast<volatile int*>(base + 2) = 1; }

int main() {
  char* memory;
  REQUIRE_OK(cudaMalloc(&memory, 16));
  write_askew<<<1, 1>>>(memory);
  EXPECT_ERROR(cudaDeviceSynchronize(), cudaErrorMisalignedAddress);
  EXPECT_ERROR(cudaMalloc(&memory, 16), cudaErrorMisalignedAddress);
  return failures();
}
