// Filling memory: bytes, words, rectangles, with and without a stream.

#include <vector>

#include "check.h"

int main() {
  constexpr size_t kBytes = 100'003;
  unsigned char* device;
  cudaStream_t stream;
  REQUIRE_OK(cudaMalloc(&device, kBytes));
  REQUIRE_OK(cudaStreamCreate(&stream));
  std::vector<unsigned char> host(kBytes);

  EXPECT_OK(cudaMemset(device, 0xab, kBytes));
  EXPECT_OK(cudaMemsetAsync(device + 1001, -1, 77, stream));
  EXPECT_OK(cudaMemcpyAsync(host.data(), device, kBytes, cudaMemcpyDeviceToHost, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  bool right = true;
  for (size_t at = 0; at < kBytes; ++at) {
    right = right && host[at] == (at >= 1001 && at < 1078 ? 0xff : 0xab);
  }
  EXPECT(right);

  // Only the low byte of the value counts.
  EXPECT_OK(cudaMemset(device, 0x1234, 4));
  EXPECT_OK(cudaMemcpy(host.data(), device, 4, cudaMemcpyDeviceToHost));
  EXPECT_EQUAL(host[3], 0x34);

  EXPECT_OK(cudaMemset(device, 0, 0));
  EXPECT_ERROR(cudaMemset(host.data(), 0, 4), cudaErrorInvalidValue);
  EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_OK(cudaStreamDestroy(stream));
  EXPECT_OK(cudaFree(device));
  return failures();
}
