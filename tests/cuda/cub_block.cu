// CUB's collectives of a block and a warp, from the toolkit's headers as they are.

#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/warp/warp_reduce.cuh>

#include <algorithm>
#include <vector>

#include "check.h"

constexpr int kThreads = 128;
constexpr int kItems = 4;

struct Result {
  int sum, largest, warp_sums[kThreads / 32];
  int scanned[kThreads], total;
  unsigned sorted[kThreads * kItems];
};

__global__ void collectives(const int* values, Result* result) {
  using Reduce = cub::BlockReduce<int, kThreads>;
  using Scan = cub::BlockScan<int, kThreads>;
  using Sort = cub::BlockRadixSort<unsigned, kThreads, kItems>;
  using WarpReduce = cub::WarpReduce<int>;
  __shared__ union {
    Reduce::TempStorage reduce;
    Scan::TempStorage scan;
    Sort::TempStorage sort;
    WarpReduce::TempStorage warps[kThreads / 32];
  } storage;
  int me = threadIdx.x;
  int value = values[me];
  int sum = Reduce(storage.reduce).Sum(value);
  __syncthreads();
  int largest = Reduce(storage.reduce).Reduce(value, cuda::maximum<>{});
  __syncthreads();
  if (me == 0) {
    result->sum = sum;
    result->largest = largest;
  }
  int scanned, total;
  Scan(storage.scan).ExclusiveSum(value, scanned, total);
  __syncthreads();
  result->scanned[me] = scanned;
  if (me == kThreads - 1) result->total = total;
  int warp_sum = WarpReduce(storage.warps[me / 32]).Sum(value);
  __syncthreads();
  if (me % 32 == 0) result->warp_sums[me / 32] = warp_sum;
  unsigned keys[kItems];
  for (int item = 0; item < kItems; ++item) keys[item] = values[me * kItems + item] * 2654435761U;
  Sort(storage.sort).Sort(keys);
  for (int item = 0; item < kItems; ++item) result->sorted[me * kItems + item] = keys[item];
}

int main() {
  int* values = nullptr;
  Result* result = nullptr;
  REQUIRE_OK(cudaMallocHost(&values, kThreads * kItems * sizeof(int)));
  REQUIRE_OK(cudaMallocHost(&result, sizeof(Result)));
  for (int i = 0; i < kThreads * kItems; ++i) values[i] = i * 37 % 101 - 50;
  collectives<<<1, kThreads>>>(values, result);
  EXPECT_OK(cudaDeviceSynchronize());
  int sum = 0, largest = values[0];
  int warp_sums[kThreads / 32] = {};
  for (int i = 0; i < kThreads; ++i) {
    EXPECT_EQUAL(result->scanned[i], sum);
    sum += values[i];
    largest = std::max(largest, values[i]);
    warp_sums[i / 32] += values[i];
  }
  EXPECT_EQUAL(result->sum, sum);
  EXPECT_EQUAL(result->total, sum);
  EXPECT_EQUAL(result->largest, largest);
  for (int warp = 0; warp < kThreads / 32; ++warp) {
    EXPECT_EQUAL(result->warp_sums[warp], warp_sums[warp]);
  }
  std::vector<unsigned> sorted(kThreads * kItems);
  for (size_t i = 0; i < sorted.size(); ++i) sorted[i] = values[i] * 2654435761U;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) EXPECT_EQUAL(result->sorted[i], sorted[i]);
  return failures();
}
