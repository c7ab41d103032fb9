// A ring of tiles between a warp that copies and warps that compute, with full and empty barriers.

#include <cuda/ptx>

#include <vector>

#include "check.h"

namespace ptx = cuda::ptx;
constexpr int kConsumers = 128;
constexpr int kTile = 512;
constexpr int kStages = 4;

__global__ void sum_squares(const int* input, int tiles, long long* sums) {
  __shared__ alignas(128) int ring[kStages][kTile];
  __shared__ alignas(8) uint64_t full[kStages], empty[kStages];
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      ptx::mbarrier_init(&full[stage], 1);
      ptx::mbarrier_init(&empty[stage], kConsumers / 32);
    }
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();
  if (threadIdx.x >= kConsumers) {
    if (threadIdx.x != kConsumers) return;
    for (int tile = 0; tile < tiles; ++tile) {
      int stage = tile % kStages, round = tile / kStages;
      // The first round finds the ring empty: the phase before the first counts as over.
      while (!ptx::mbarrier_try_wait_parity(&empty[stage], (round + 1) % 2)) {
      }
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared,
                                     &full[stage], sizeof ring[stage]);
      ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, ring[stage], input + tile * kTile,
                         sizeof ring[stage], &full[stage]);
    }
    return;
  }
  long long sum = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    int stage = tile % kStages, round = tile / kStages;
    while (!ptx::mbarrier_try_wait_parity(&full[stage], round % 2)) {
    }
    for (int i = static_cast<int>(threadIdx.x); i < kTile; i += kConsumers) {
      sum += static_cast<long long>(ring[stage][i]) * ring[stage][i];
    }
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
      ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &empty[stage]);
    }
  }
  sums[threadIdx.x] = sum;
}

int main() {
  constexpr int kTiles = 41;
  std::vector<int> input(kTiles * kTile);
  for (size_t i = 0; i < input.size(); ++i)
    input[i] = static_cast<int>(i * 2654435761u >> 12) - 500000;
  int* from;
  long long *to, sums[kConsumers];
  REQUIRE_OK(cudaMalloc(&from, input.size() * sizeof(int)));
  REQUIRE_OK(cudaMalloc(&to, sizeof sums));
  REQUIRE_OK(cudaMemcpy(from, input.data(), input.size() * sizeof(int), cudaMemcpyHostToDevice));
  sum_squares<<<1, kConsumers + 32>>>(from, kTiles, to);
  REQUIRE_OK(cudaMemcpy(sums, to, sizeof sums, cudaMemcpyDeviceToHost));
  for (int thread = 0; thread < kConsumers; ++thread) {
    long long expected = 0;
    for (size_t i = static_cast<size_t>(thread); i < input.size(); i += kConsumers) {
      expected += static_cast<long long>(input[i]) * input[i];
    }
    EXPECT_EQUAL(sums[thread], expected);
  }
  return failures();
}
