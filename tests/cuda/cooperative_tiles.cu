// Cooperative groups within a block: tiles of a warp's parts and of several warps, coalesced
// threads, partitions by value, reductions and scans.

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include "array.h"

namespace cg = cooperative_groups;

__global__ void small_tiles(int* out) {
  auto block = cg::this_thread_block();
  int n = block.thread_rank();
  auto tile = cg::tiled_partition<8>(block);
  int sum = cg::reduce(tile, n, cg::plus<int>());
  int before = cg::exclusive_scan(tile, n);
  int largest = cg::reduce(tile, n ^ 5, cg::greater<int>());
  out[n] = sum;
  out[128 + n] = before;
  out[256 + n] = largest;
  auto odd = cg::labeled_partition(cg::tiled_partition<32>(block), n % 3);
  out[384 + n] = odd.size() * 100 + odd.thread_rank();
  if (n % 4 == 1) {
    auto active = cg::coalesced_threads();
    out[512 + n] = active.size() * 1000 + cg::reduce(active, 1, cg::plus<int>()) * 100 +
                   active.shfl(active.thread_rank(), 3);
  }
}

__global__ void large_tiles(int* out) {
  auto block = cg::this_thread_block();
  int n = block.thread_rank();
  auto tile = cg::tiled_partition<64>(block);
  out[n] = cg::reduce(tile, n, cg::plus<int>());
  tile.sync();
  out[128 + n] = tile.any(n == 70) * 2 + tile.all(n < 64);
  out[256 + n] = tile.shfl(n * 2, 33);
}

int main() {
  Array<int> out(640);
  small_tiles<<<1, 128>>>(out.device);
  EXPECT_OK(cudaDeviceSynchronize());
  out.to_host();
  for (int n = 0; n < 128; ++n) {
    int first = n / 8 * 8, before = 0, largest = 0;
    for (int i = first; i < first + 8; ++i) {
      before += i < n ? i : 0;
      largest = (i ^ 5) > largest ? i ^ 5 : largest;
    }
    EXPECT_EQUAL(out.host[n], 8 * first + 28);
    EXPECT_EQUAL(out.host[128 + n], before);
    EXPECT_EQUAL(out.host[256 + n], largest);
    int size = 0, rank = 0;
    for (int i = n / 32 * 32; i < n / 32 * 32 + 32; ++i) {
      size += i % 3 == n % 3;
      rank += i % 3 == n % 3 && i < n;
    }
    EXPECT_EQUAL(out.host[384 + n], size * 100 + rank);
    if (n % 4 == 1) EXPECT_EQUAL(out.host[512 + n], 8 * 1000 + 8 * 100 + 3);
  }
  large_tiles<<<1, 128>>>(out.device);
  EXPECT_OK(cudaDeviceSynchronize());
  out.to_host();
  for (int n = 0; n < 128; ++n) {
    int first = n / 64 * 64;
    EXPECT_EQUAL(out.host[n], 64 * first + 63 * 32);
    EXPECT_EQUAL(out.host[128 + n], first == 0 ? 1 : 2);
    EXPECT_EQUAL(out.host[256 + n], 2 * (first + 33));
  }
  return failures();
}
