// __pipeline_memcpy_async: copies of 4, 8 and 16 bytes, zero filling, groups in flight, and an
// mbarrier that they arrive at.

#include <cuda_awbarrier_primitives.h>
#include <cuda_pipeline_primitives.h>

#include <vector>

#include "check.h"

constexpr int kThreads = 128;
constexpr int kTiles = 10;
constexpr int kStages = 3;

/// Sums tiles while the next ones are on their way.
__global__ void sum_tiles(const int4* input, int* sums) {
  __shared__ int4 stages[kStages][kThreads];
  int sum = 0;
  auto fetch = [&](int tile) {
    if (tile < kTiles) {
      __pipeline_memcpy_async(&stages[tile % kStages][threadIdx.x],
                              &input[tile * kThreads + threadIdx.x], sizeof(int4));
    }
    __pipeline_commit();
  };
  for (int tile = 0; tile < kStages - 1; ++tile) fetch(tile);
  for (int tile = 0; tile < kTiles; ++tile) {
    fetch(tile + kStages - 1);
    __pipeline_wait_prior(kStages - 1);
    __syncthreads();
    int4 values = stages[tile % kStages][(threadIdx.x + 7) % kThreads];
    sum += values.x - values.y + 2 * values.z + values.w;
    __syncthreads();
  }
  sums[threadIdx.x] = sum;
}

template <typename T>
__global__ void copy_part(const T* input, T* output, size_t zeros) {
  __shared__ T values[kThreads];
  __pipeline_memcpy_async(&values[threadIdx.x], &input[threadIdx.x], sizeof(T), zeros);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  output[threadIdx.x] = values[threadIdx.x];
}

__global__ void arrive_when_there(const int* input, int* output) {
  __shared__ __mbarrier_t barrier;
  __shared__ int values[kThreads];
  if (threadIdx.x == 0) __mbarrier_init(&barrier, kThreads);
  __syncthreads();
  __pipeline_memcpy_async(&values[threadIdx.x], &input[threadIdx.x], sizeof(int));
  __pipeline_arrive_on(&barrier);
  __mbarrier_token_t token = __mbarrier_arrive(&barrier);
  while (!__mbarrier_test_wait(&barrier, token)) {
  }
  output[threadIdx.x] = values[kThreads - 1 - threadIdx.x];
}

template <typename T>
void check_part(const T* input, T* output, size_t zeros) {
  copy_part<<<1, kThreads>>>(input, output, zeros);
  std::vector<unsigned char> from(kThreads * sizeof(T)), to(from.size());
  REQUIRE_OK(cudaMemcpy(from.data(), input, from.size(), cudaMemcpyDeviceToHost));
  REQUIRE_OK(cudaMemcpy(to.data(), output, to.size(), cudaMemcpyDeviceToHost));
  bool right = true;
  for (size_t i = 0; i < to.size(); ++i) {
    right = right && to[i] == (i % sizeof(T) < sizeof(T) - zeros ? from[i] : 0);
  }
  EXPECT(right);
}

int main() {
  std::vector<int> input(kTiles * kThreads * 4);
  for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<int>(i * 2654435761u >> 8);
  int *from, *to;
  REQUIRE_OK(cudaMalloc(&from, input.size() * sizeof(int)));
  REQUIRE_OK(cudaMalloc(&to, kThreads * sizeof(int4)));
  REQUIRE_OK(cudaMemcpy(from, input.data(), input.size() * sizeof(int), cudaMemcpyHostToDevice));
  std::vector<int> output(kThreads);
  auto fetch = [&] {
    REQUIRE_OK(cudaMemcpy(output.data(), to, kThreads * sizeof(int), cudaMemcpyDeviceToHost));
  };
  sum_tiles<<<1, kThreads>>>(reinterpret_cast<const int4*>(from), to);
  fetch();
  for (int i = 0; i < kThreads; ++i) {
    int sum = 0;
    for (int tile = 0; tile < kTiles; ++tile) {
      const int* values = &input[(tile * kThreads + (i + 7) % kThreads) * 4];
      sum += values[0] - values[1] + 2 * values[2] + values[3];
    }
    EXPECT_EQUAL(output[i], sum);
  }
  for (size_t zeros : {0, 1, 4, 15, 16}) {
    if (zeros <= 4) check_part(from, to, zeros);
    if (zeros <= 4) check_part(reinterpret_cast<int2*>(from), reinterpret_cast<int2*>(to), zeros);
    check_part(reinterpret_cast<int4*>(from), reinterpret_cast<int4*>(to), zeros);
  }
  arrive_when_there<<<1, kThreads>>>(from, to);
  fetch();
  for (int i = 0; i < kThreads; ++i) EXPECT_EQUAL(output[i], input[kThreads - 1 - i]);
  return failures();
}
