// cuda::pipeline with several stages, of a block and of single threads, and memcpy_async of
// cooperative groups.

#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/pipeline>

#include <vector>

#include "check.h"

// A barrier is initialised by init().
#pragma nv_diag_suppress static_var_with_dynamic_init

namespace cg = cooperative_groups;

constexpr int kThreads = 128;
constexpr int kTiles = 8;
constexpr int kStages = 3;

__global__ void by_block(const int* input, int* sums) {
  auto block = cg::this_thread_block();
  __shared__ alignas(16) int stages[kStages][kThreads];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, kStages> state;
  auto pipeline = cuda::make_pipeline(block, &state);
  int sum = 0, fetched = 0;
  for (int tile = 0; tile < kTiles; ++tile) {
    for (; fetched < kTiles && fetched < tile + kStages; ++fetched) {
      pipeline.producer_acquire();
      cuda::memcpy_async(block, stages[fetched % kStages], input + fetched * kThreads,
                         cuda::aligned_size_t<16>(kThreads * sizeof(int)), pipeline);
      pipeline.producer_commit();
    }
    pipeline.consumer_wait();
    sum += stages[tile % kStages][kThreads - 1 - threadIdx.x];
    pipeline.consumer_release();
  }
  sums[threadIdx.x] = sum;
}

/// Half of the block copies, the other half computes.
__global__ void by_roles(const int* input, int* sums) {
  auto block = cg::this_thread_block();
  __shared__ alignas(16) int stages[kStages][kThreads];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, kStages> state;
  auto role =
      threadIdx.x < kThreads ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
  auto pipeline = cuda::make_pipeline(block, &state, role);
  if (role == cuda::pipeline_role::producer) {
    for (int tile = 0; tile < kTiles; ++tile) {
      pipeline.producer_acquire();
      cuda::memcpy_async(&stages[tile % kStages][threadIdx.x],
                         &input[tile * kThreads + threadIdx.x], sizeof(int), pipeline);
      pipeline.producer_commit();
    }
  } else {
    int lane = threadIdx.x - kThreads, sum = 0;
    for (int tile = 0; tile < kTiles; ++tile) {
      pipeline.consumer_wait();
      sum += stages[tile % kStages][kThreads - 1 - lane];
      pipeline.consumer_release();
    }
    sums[lane] = sum;
  }
}

__global__ void by_thread(const int* input, int* sums) {
  __shared__ int stages[kStages][kThreads];
  auto pipeline = cuda::make_pipeline();
  int sum = 0, fetched = 0, mine = kThreads - 1 - static_cast<int>(threadIdx.x);
  for (int tile = 0; tile < kTiles; ++tile) {
    for (; fetched < kTiles && fetched < tile + kStages; ++fetched) {
      pipeline.producer_acquire();
      cuda::memcpy_async(&stages[fetched % kStages][mine], &input[fetched * kThreads + mine],
                         sizeof(int), pipeline);
      pipeline.producer_commit();
    }
    if (tile + kStages <= kTiles) {
      cuda::pipeline_consumer_wait_prior<kStages - 1>(pipeline);
    } else {
      cuda::pipeline_consumer_wait_prior<0>(pipeline);
    }
    sum += stages[tile % kStages][mine];
  }
  sums[threadIdx.x] = sum;
}

__global__ void by_group(const int* input, int* sums) {
  auto block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  __shared__ int stages[2][kThreads];
  int sum = 0, first = static_cast<int>(warp.meta_group_rank()) * 32;
  cg::memcpy_async(warp, &stages[0][first], &input[first], sizeof(int) * 32);
  for (int tile = 0; tile < kTiles; ++tile) {
    if (tile + 1 < kTiles) {
      cg::memcpy_async(warp, &stages[(tile + 1) % 2][first], &input[(tile + 1) * kThreads + first],
                       sizeof(int) * 32);
      cg::wait_prior<1>(warp);
    } else {
      cg::wait(warp);
    }
    sum += stages[tile % 2][first + 31 - static_cast<int>(warp.thread_rank())];
    warp.sync();
  }
  sums[kThreads - 1 - (first + 31 - static_cast<int>(warp.thread_rank()))] = sum;
}

int main() {
  std::vector<int> input(kTiles * kThreads), output(kThreads);
  for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<int>(i * 2654435761u >> 8);
  int *from, *to;
  REQUIRE_OK(cudaMalloc(&from, input.size() * sizeof(int)));
  REQUIRE_OK(cudaMalloc(&to, kThreads * sizeof(int)));
  REQUIRE_OK(cudaMemcpy(from, input.data(), input.size() * sizeof(int), cudaMemcpyHostToDevice));
  auto check = [&](const char* what) {
    REQUIRE_OK(cudaMemcpy(output.data(), to, kThreads * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < kThreads; ++i) {
      int sum = 0;
      for (int tile = 0; tile < kTiles; ++tile) sum += input[tile * kThreads + kThreads - 1 - i];
      if (!EXPECT_EQUAL(output[i], sum)) {
        fprintf(stderr, "by %s, thread %d\n", what, i);
        return;
      }
    }
    EXPECT_OK(cudaMemset(to, 0, kThreads * sizeof(int)));
  };
  by_block<<<1, kThreads>>>(from, to);
  check("block");
  by_roles<<<1, 2 * kThreads>>>(from, to);
  check("roles");
  by_thread<<<1, kThreads>>>(from, to);
  check("thread");
  by_group<<<1, kThreads>>>(from, to);
  check("group");
  return failures();
}
