// Asynchronous copies from and to memory that is not pinned: the source may change and the target
// be read as soon as the call returns.

#include <vector>

#include "check.h"

__global__ void add_one(int* values, int count) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < count) values[at] += 1;
}

int main() {
  constexpr int kCount = 3 << 20;  // larger than any staging buffer
  std::vector<int> source(kCount), target(kCount);
  for (int at = 0; at < kCount; ++at) source[at] = at * 3;
  int* device;
  cudaStream_t stream;
  REQUIRE_OK(cudaMalloc(&device, kCount * sizeof(int)));
  REQUIRE_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));

  for (int round = 0; round < 3; ++round) {
    EXPECT_OK(cudaMemcpyAsync(device, source.data(), kCount * sizeof(int), cudaMemcpyHostToDevice,
                              stream));
    for (int& value : source) value += 1000;
    add_one<<<(kCount + 255) / 256, 256, 0, stream>>>(device, kCount);
    EXPECT_OK(cudaMemcpyAsync(target.data(), device, kCount * sizeof(int), cudaMemcpyDeviceToHost,
                              stream));
    EXPECT_OK(cudaStreamSynchronize(stream));
    bool right = true;
    for (int at = 0; at < kCount; ++at) right = right && target[at] == at * 3 + round * 1000 + 1;
    EXPECT(right);
  }
  EXPECT_OK(cudaStreamDestroy(stream));
  EXPECT_OK(cudaFree(device));
  return failures();
}
