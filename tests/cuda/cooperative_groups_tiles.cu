// Cooperative groups within a warp: tiles, coalesced threads, partitions, and the collectives on
// them.

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include <vector>

#include "check.h"

namespace cg = cooperative_groups;

struct Seen {
  int tile_rank, tile_number, from_next, sum, largest, bits, inclusive, exclusive;
  int odd_size, odd_rank, odd_sum, label_size, label_rank, same_parity, any_seven;
};

template <int kTile>
__global__ void collectives(Seen* seen) {
  cg::thread_block block = cg::this_thread_block();
  auto tile = cg::tiled_partition<kTile>(block);
  int me = static_cast<int>(block.thread_rank());
  Seen& mine = seen[me];
  mine.tile_rank = static_cast<int>(tile.thread_rank());
  mine.tile_number = static_cast<int>(tile.meta_group_rank());
  mine.from_next = tile.shfl(me, (tile.thread_rank() + 1) % tile.size());
  mine.sum = cg::reduce(tile, me, cg::plus<int>());
  mine.largest = cg::reduce(tile, me * 7 % 31, cg::greater<int>());
  mine.bits = cg::reduce(tile, 1 << me % 5, cg::bit_or<int>());
  mine.inclusive = cg::inclusive_scan(tile, me);
  mine.exclusive = cg::exclusive_scan(tile, me, cg::plus<int>());
  mine.any_seven = tile.any(me == 7);
  tile.sync();
  mine.odd_size = mine.odd_rank = mine.odd_sum = 0;
  if (me % 2 == 1) {
    cg::coalesced_group odd = cg::coalesced_threads();
    mine.odd_size = static_cast<int>(odd.size());
    mine.odd_rank = static_cast<int>(odd.thread_rank());
    mine.odd_sum = cg::reduce(odd, me, cg::plus<int>());
  }
  tile.sync();
  auto labeled = cg::labeled_partition(tile, me % 3);
  mine.label_size = static_cast<int>(labeled.size());
  mine.label_rank = static_cast<int>(labeled.thread_rank());
  auto parity = cg::binary_partition(tile, me % 2 == 0);
  mine.same_parity = static_cast<int>(parity.size());
}

template <int kTile>
static void check(int threads) {
  Seen* seen = nullptr;
  REQUIRE_OK(cudaMallocHost(&seen, threads * sizeof(Seen)));
  collectives<kTile><<<1, threads>>>(seen);
  EXPECT_OK(cudaDeviceSynchronize());
  for (int me = 0; me < threads; ++me) {
    int first = me / kTile * kTile, sum = 0, largest = 0, bits = 0, before = 0;
    int labels = 0, labels_before = 0, parity = 0, warp_odd = 0, warp_odd_before = 0, odd_sum = 0;
    for (int other = first; other < first + kTile; ++other) {
      sum += other;
      largest = other * 7 % 31 > largest ? other * 7 % 31 : largest;
      bits |= 1 << other % 5;
      if (other < me) before += other;
      labels += other % 3 == me % 3;
      labels_before += other < me && other % 3 == me % 3;
      parity += other % 2 == me % 2;
    }
    for (int other = me / 32 * 32; other < me / 32 * 32 + 32 && other < threads; ++other) {
      if (other % 2 == 0) continue;
      ++warp_odd;
      warp_odd_before += other < me;
      odd_sum += other;
    }
    const Seen& its = seen[me];
    EXPECT_EQUAL(its.tile_rank, me % kTile);
    EXPECT_EQUAL(its.tile_number, me / kTile);
    EXPECT_EQUAL(its.from_next, first + (me + 1) % kTile);
    EXPECT_EQUAL(its.sum, sum);
    EXPECT_EQUAL(its.largest, largest);
    EXPECT_EQUAL(its.bits, bits);
    EXPECT_EQUAL(its.inclusive, before + me);
    EXPECT_EQUAL(its.exclusive, before);
    EXPECT_EQUAL(its.any_seven != 0, first <= 7 && 7 < first + kTile);
    EXPECT_EQUAL(its.label_size, labels);
    EXPECT_EQUAL(its.label_rank, labels_before);
    EXPECT_EQUAL(its.same_parity, parity);
    if (me % 2 == 0) continue;
    // How many of the warp's threads meet there is the machine's choice.
    EXPECT(its.odd_size >= 1 && its.odd_size <= warp_odd && its.odd_rank < its.odd_size);
    if (its.odd_size == warp_odd) {
      EXPECT_EQUAL(its.odd_rank, warp_odd_before);
      EXPECT_EQUAL(its.odd_sum, odd_sum);
    }
  }
  EXPECT_OK(cudaFreeHost(seen));
}

int main() {
  check<32>(64);
  check<8>(64);
  check<4>(32);
  return failures();
}
