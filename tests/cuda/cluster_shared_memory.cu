// Distributed shared memory: a histogram whose bins are spread over the blocks of a cluster, an
// exchange of every block with every other, and a ring that is passed on by split barriers.

#include <cooperative_groups.h>

#include <vector>

#include "check.h"

namespace cg = cooperative_groups;

constexpr unsigned kBlocks = 4;
constexpr unsigned kThreads = 128;
constexpr unsigned kBinsPerBlock = 64;
constexpr unsigned kBins = kBlocks * kBinsPerBlock;

__global__ void __cluster_dims__(kBlocks, 1, 1)
    histogram(const unsigned* values, unsigned count, unsigned* bins) {
  extern __shared__ unsigned counts[];
  cg::cluster_group cluster = cg::this_cluster();
  for (unsigned bin = threadIdx.x; bin < kBinsPerBlock; bin += blockDim.x) counts[bin] = 0;
  cluster.sync();
  for (unsigned at = cluster.thread_rank(); at < count; at += cluster.num_threads()) {
    unsigned bin = values[at] % kBins;
    atomicAdd(cluster.map_shared_rank(counts, bin / kBinsPerBlock) + bin % kBinsPerBlock, 1);
  }
  cluster.sync();
  for (unsigned bin = threadIdx.x; bin < kBinsPerBlock; bin += blockDim.x) {
    bins[cluster.block_rank() * kBinsPerBlock + bin] = counts[bin];
  }
}

/// Block `a` writes into every block's memory; then each block adds what it got.
__global__ void __cluster_dims__(2, 2, 2) exchange(unsigned* sums, unsigned* shape) {
  __shared__ unsigned inbox[8];
  cg::cluster_group cluster = cg::this_cluster();
  unsigned rank = cluster.block_rank();
  if (threadIdx.x < cluster.num_blocks()) {
    unsigned* theirs = cluster.map_shared_rank(inbox, threadIdx.x);
    theirs[rank] = (rank + 1) * 100 + threadIdx.x;
  }
  cluster.sync();
  unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  if (threadIdx.x == 0) {
    unsigned sum = 0;
    for (unsigned value : inbox) sum += value;
    sums[block] = sum;
    dim3 place = cluster.block_index();
    dim3 extent = cluster.dim_blocks();
    shape[block] = place.x + 2 * place.y + 4 * place.z == rank && extent.x == 2 && extent.y == 2 &&
                   extent.z == 2 &&
                   cluster.query_shared_rank(cluster.map_shared_rank(inbox, 5)) == 5;
  }
  cluster.sync();
}

__global__ void __cluster_dims__(kBlocks, 1, 1) ring(unsigned* out, unsigned rounds) {
  __shared__ unsigned slot[2];
  cg::cluster_group cluster = cg::this_cluster();
  unsigned rank = cluster.block_rank();
  unsigned* next = cluster.map_shared_rank(slot, (rank + 1) % cluster.num_blocks());
  if (threadIdx.x == 0) slot[0] = rank;
  cluster.sync();
  for (unsigned round = 0; round < rounds; ++round) {
    if (threadIdx.x == 0) next[(round + 1) % 2] = slot[round % 2] + 10;
    auto token = cluster.barrier_arrive();
    cluster.barrier_wait(std::move(token));
  }
  if (threadIdx.x == 0) out[blockIdx.x] = slot[rounds % 2];
  cluster.sync();
}

int main() {
  int supported = 0;
  REQUIRE_OK(cudaDeviceGetAttribute(&supported, cudaDevAttrClusterLaunch, 0));
  if (supported == 0) return 77;
  constexpr unsigned kCount = 5000;
  std::vector<unsigned> values(kCount), expected(kBins), bins(2 * kBins);
  for (unsigned at = 0; at < kCount; ++at) {
    values[at] = (at * 2654435761u) >> 7;
    ++expected[values[at] % kBins];
  }
  unsigned *device_values, *device_bins;
  REQUIRE_OK(cudaMalloc(&device_values, kCount * sizeof(unsigned)));
  REQUIRE_OK(cudaMalloc(&device_bins, 2 * kBins * sizeof(unsigned)));
  REQUIRE_OK(
      cudaMemcpy(device_values, values.data(), kCount * sizeof(unsigned), cudaMemcpyHostToDevice));
  histogram<<<kBlocks, kThreads, kBinsPerBlock * sizeof(unsigned)>>>(device_values, kCount,
                                                                     device_bins);
  REQUIRE_OK(cudaGetLastError());
  REQUIRE_OK(
      cudaMemcpy(bins.data(), device_bins, kBins * sizeof(unsigned), cudaMemcpyDeviceToHost));
  for (unsigned bin = 0; bin < kBins; ++bin) EXPECT_EQUAL(bins[bin], expected[bin]);

  exchange<<<dim3(4, 2, 2), 32>>>(device_bins, device_bins + 16);
  REQUIRE_OK(cudaGetLastError());
  REQUIRE_OK(cudaMemcpy(bins.data(), device_bins, 32 * sizeof(unsigned), cudaMemcpyDeviceToHost));
  for (unsigned block = 0; block < 16; ++block) {
    unsigned rank = block % 2 + block / 4 % 2 * 2 + block / 8 * 4;
    EXPECT_EQUAL(bins[block], 3600 + 8 * rank);
    EXPECT_EQUAL(bins[16 + block], 1);
  }

  ring<<<2 * kBlocks, 64>>>(device_bins, 6);
  REQUIRE_OK(cudaGetLastError());
  REQUIRE_OK(cudaMemcpy(bins.data(), device_bins, 8 * sizeof(unsigned), cudaMemcpyDeviceToHost));
  for (unsigned block = 0; block < 8; ++block) {
    EXPECT_EQUAL(bins[block], (block % kBlocks + 2 * kBlocks - 6) % kBlocks + 60);
  }
  EXPECT_OK(cudaFree(device_values));
  EXPECT_OK(cudaFree(device_bins));
  return failures();
}
