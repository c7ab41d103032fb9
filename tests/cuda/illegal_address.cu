// An access outside every allocation breaks the context: the error comes with the next
// synchronisation and with every call after it.

#include "check.h"

__global__ void write_far_away(char* base) { base[size_t{1} << 40] = 1; }

int main() {
  char* memory;
  REQUIRE_OK(cudaMalloc(&memory, 16));
  write_far_away<<<1, 1>>>(memory);
  EXPECT_OK(cudaGetLastError());
  EXPECT_ERROR(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  EXPECT_ERROR(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_ERROR(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_ERROR(cudaPeekAtLastError(), cudaErrorIllegalAddress);
  void* more;
  EXPECT_ERROR(cudaMalloc(&more, 16), cudaErrorIllegalAddress);
  char value;
  EXPECT_ERROR(cudaMemcpy(&value, memory, 1, cudaMemcpyDeviceToHost), cudaErrorIllegalAddress);
  cudaStream_t stream;
  EXPECT_ERROR(cudaStreamCreate(&stream), cudaErrorIllegalAddress);
  write_far_away<<<1, 1>>>(memory);
  EXPECT_ERROR(cudaGetLastError(), cudaErrorIllegalAddress);
  int count = 0;
  EXPECT_OK(cudaGetDeviceCount(&count));
  EXPECT(count > 0);
  return failures();
}
