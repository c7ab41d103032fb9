// Device memory: sizes, reuse, what is left, frees that are refused.

#include <cstdint>

#include "check.h"

__global__ void touch(unsigned char* memory, size_t bytes) {
  for (size_t at = threadIdx.x; at < bytes; at += blockDim.x) {
    memory[at] = static_cast<unsigned char>(at);
  }
}

int main() {
  void* pointers[64] = {};
  for (int at = 0; at < 64; ++at) {
    size_t bytes = static_cast<size_t>(at) * at * 37 + 1;
    REQUIRE_OK(cudaMalloc(&pointers[at], bytes));
    EXPECT_EQUAL(reinterpret_cast<uintptr_t>(pointers[at]) % 256, 0);
    touch<<<1, 64>>>(static_cast<unsigned char*>(pointers[at]), bytes);
  }
  REQUIRE_OK(cudaDeviceSynchronize());
  unsigned char last = 0;
  EXPECT_OK(cudaMemcpy(&last, static_cast<char*>(pointers[63]) + 1000, 1, cudaMemcpyDeviceToHost));
  EXPECT_EQUAL(last, 1000 % 256);

  size_t before = 0, after = 0, total = 0;
  EXPECT_OK(cudaMemGetInfo(&before, &total));
  void* large = nullptr;
  EXPECT_OK(cudaMalloc(&large, size_t{256} << 20));
  EXPECT_OK(cudaMemGetInfo(&after, &total));
  EXPECT(before - after >= size_t{256} << 20);
  EXPECT_OK(cudaFree(large));
  EXPECT_OK(cudaMemGetInfo(&after, &total));
  EXPECT_EQUAL(after, before);

  for (void* pointer : pointers) EXPECT_OK(cudaFree(pointer));
  EXPECT_OK(cudaFree(nullptr));
  EXPECT_ERROR(cudaFree(pointers[5]), cudaErrorInvalidValue);
  EXPECT_ERROR(cudaFree(&before), cudaErrorInvalidValue);
  EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);

  void* nothing = &before;
  EXPECT_OK(cudaMalloc(&nothing, 0));
  EXPECT(nothing == nullptr);
  EXPECT_ERROR(cudaMalloc(&nothing, size_t{1} << 46), cudaErrorMemoryAllocation);
  EXPECT_ERROR(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_ERROR(cudaMalloc(nullptr, 8), cudaErrorInvalidValue);
  return failures();
}
