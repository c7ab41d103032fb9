// Two devices in one process.

#include <vector>

#include "check.h"

__global__ void read_peer(const int* peer, int* mine) { mine[threadIdx.x] = peer[threadIdx.x] + 1; }

int main() {
  int count = 0;
  REQUIRE_OK(cudaGetDeviceCount(&count));
  if (count < 2) {
    fprintf(stderr, "needs two devices\n");
    return 77;
  }
  int can = 0;
  EXPECT_OK(cudaDeviceCanAccessPeer(&can, 0, 0));
  EXPECT_EQUAL(can, 0);
  REQUIRE_OK(cudaDeviceCanAccessPeer(&can, 0, 1));
  EXPECT_ERROR(cudaDeviceCanAccessPeer(&can, 0, count), cudaErrorInvalidDevice);
  REQUIRE_OK(cudaDeviceCanAccessPeer(&can, 0, 1));
  if (can == 0) {
    fprintf(stderr, "needs two devices with peer access\n");
    return 77;
  }

  constexpr int kCount = 256;
  std::vector<int> values(kCount);
  for (int at = 0; at < kCount; ++at) values[at] = at * at;
  int *on_first, *on_second;
  REQUIRE_OK(cudaSetDevice(1));
  REQUIRE_OK(cudaMalloc(&on_second, kCount * sizeof(int)));
  REQUIRE_OK(cudaMemcpy(on_second, values.data(), kCount * sizeof(int), cudaMemcpyHostToDevice));
  REQUIRE_OK(cudaSetDevice(0));
  REQUIRE_OK(cudaMalloc(&on_first, kCount * sizeof(int)));

  // Copies between devices need no peer access.
  EXPECT_OK(cudaMemcpyPeer(on_first, 0, on_second, 1, kCount * sizeof(int)));
  std::vector<int> results(kCount);
  REQUIRE_OK(cudaMemcpy(results.data(), on_first, kCount * sizeof(int), cudaMemcpyDeviceToHost));
  EXPECT(results == values);
  EXPECT_OK(cudaMemset(on_first, 0, kCount * sizeof(int)));
  EXPECT_OK(cudaMemcpy(on_first, on_second, kCount * sizeof(int), cudaMemcpyDefault));
  REQUIRE_OK(cudaMemcpy(results.data(), on_first, kCount * sizeof(int), cudaMemcpyDeviceToHost));
  EXPECT(results == values);

  EXPECT_ERROR(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
  EXPECT_ERROR(cudaDeviceEnablePeerAccess(0, 0), cudaErrorInvalidDevice);
  EXPECT_ERROR(cudaDeviceEnablePeerAccess(1, 1), cudaErrorInvalidValue);
  REQUIRE_OK(cudaDeviceEnablePeerAccess(1, 0));
  EXPECT_ERROR(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
  cudaGetLastError();
  read_peer<<<1, kCount>>>(on_second, on_first);
  REQUIRE_OK(cudaMemcpy(results.data(), on_first, kCount * sizeof(int), cudaMemcpyDeviceToHost));
  bool right = true;
  for (int at = 0; at < kCount; ++at) right = right && results[at] == at * at + 1;
  EXPECT(right);

  // A stream belongs to its device.
  cudaStream_t stream;
  REQUIRE_OK(cudaStreamCreate(&stream));
  REQUIRE_OK(cudaSetDevice(1));
  read_peer<<<1, 1, 0, stream>>>(on_second, on_second);
  EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidResourceHandle);
  cudaEvent_t event;
  REQUIRE_OK(cudaEventCreate(&event));
  EXPECT_ERROR(cudaEventRecord(event, stream), cudaErrorInvalidResourceHandle);
  cudaGetLastError();
  REQUIRE_OK(cudaSetDevice(0));
  EXPECT_OK(cudaDeviceDisablePeerAccess(1));
  EXPECT_OK(cudaFree(on_first));
  EXPECT_OK(cudaFree(on_second));
  return failures();
}
