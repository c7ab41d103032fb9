// Stream-ordered memory: allocated and freed between kernels of a stream, handed to another stream
// through an event, reused without end, freed by cudaFree, and what is refused.

#include <cstring>
#include <vector>

#include "check.h"

__global__ void fill(int* out, int count, int value) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < count) out[at] = value + at;
}
__global__ void add(int* out, const int* in, int count) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < count) out[at] += in[at];
}

namespace {

constexpr int kCount = 10000;
constexpr size_t kBytes = kCount * sizeof(int);
constexpr int kBlocks = (kCount + 255) / 256;

void work_in_one_stream(cudaStream_t stream) {
  int *sum, *part;
  REQUIRE_OK(cudaMallocAsync(&sum, kBytes, stream));
  EXPECT_OK(cudaMemsetAsync(sum, 0, kBytes, stream));
  for (int round = 1; round <= 3; ++round) {
    REQUIRE_OK(cudaMallocAsync(&part, kBytes, stream));
    fill<<<kBlocks, 256, 0, stream>>>(part, kCount, round);
    add<<<kBlocks, 256, 0, stream>>>(sum, part, kCount);
    EXPECT_OK(cudaFreeAsync(part, stream));
  }
  std::vector<int> found(kCount);
  EXPECT_OK(cudaMemcpyAsync(found.data(), sum, kBytes, cudaMemcpyDeviceToHost, stream));
  EXPECT_OK(cudaFreeAsync(sum, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  bool right = true;
  for (int at = 0; at < kCount; ++at) right = right && found[at] == 6 + 3 * at;
  EXPECT(right);
}

void hand_over(cudaStream_t from, cudaStream_t to) {
  cudaEvent_t made;
  REQUIRE_OK(cudaEventCreateWithFlags(&made, cudaEventDisableTiming));
  int* memory;
  REQUIRE_OK(cudaMallocAsync(&memory, kBytes, from));
  fill<<<kBlocks, 256, 0, from>>>(memory, kCount, 5);
  EXPECT_OK(cudaEventRecord(made, from));
  EXPECT_OK(cudaStreamWaitEvent(to, made, 0));
  add<<<kBlocks, 256, 0, to>>>(memory, memory, kCount);
  int last = 0;
  EXPECT_OK(cudaMemcpyAsync(&last, memory + kCount - 1, sizeof last, cudaMemcpyDeviceToHost, to));
  EXPECT_OK(cudaFreeAsync(memory, to));
  EXPECT_OK(cudaStreamSynchronize(to));
  EXPECT_EQUAL(last, 2 * (kCount + 4));
  EXPECT_OK(cudaEventDestroy(made));
}

/// More in all than any device has, but never two of them at once.
void reuse(cudaStream_t stream) {
  size_t free_bytes = 0, total_bytes = 0;
  REQUIRE_OK(cudaMemGetInfo(&free_bytes, &total_bytes));
  size_t bytes = free_bytes / 4 * 3;
  for (int round = 0; round < 20; ++round) {
    int* memory;
    if (!EXPECT_OK(cudaMallocAsync(&memory, bytes, stream))) return;
    fill<<<1, 32, 0, stream>>>(memory, 32, round);
    EXPECT_OK(cudaFreeAsync(memory, stream));
  }
  EXPECT_OK(cudaStreamSynchronize(stream));
}

}  // namespace

int main() {
  int supported = 0;
  REQUIRE_OK(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, 0));
  if (supported == 0) return 77;
  cudaStream_t stream, other;
  REQUIRE_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  REQUIRE_OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  work_in_one_stream(stream);
  work_in_one_stream(nullptr);
  hand_over(stream, other);
  reuse(stream);

  int* memory;
  REQUIRE_OK(cudaMallocAsync(&memory, kBytes, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  cudaPointerAttributes attributes;
  EXPECT_OK(cudaPointerGetAttributes(&attributes, memory));
  EXPECT_EQUAL(attributes.type, cudaMemoryTypeDevice);
  cudaIpcMemHandle_t handle;
  EXPECT_ERROR(cudaIpcGetMemHandle(&handle, memory), cudaErrorInvalidValue);
  EXPECT_OK(cudaFree(memory));

  EXPECT_ERROR(cudaMallocAsync(&memory, size_t{1} << 50, stream), cudaErrorMemoryAllocation);
  EXPECT_ERROR(cudaFreeAsync(&stream, stream), cudaErrorInvalidValue);
  EXPECT_ERROR(cudaMallocAsync(static_cast<int**>(nullptr), 4, stream), cudaErrorInvalidValue);
  cudaGetLastError();
  EXPECT_OK(cudaStreamDestroy(stream));
  EXPECT_OK(cudaStreamDestroy(other));
  return failures();
}
