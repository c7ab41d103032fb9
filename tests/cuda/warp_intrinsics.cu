// Exchanges between the lanes of a warp: shuffles of each type and width, votes, matches,
// reductions, with all lanes and with some.

#include <algorithm>

#include "array.h"

constexpr unsigned kAll = 0xffffffff;

__global__ void shuffle(long long* out) {
  int lane = threadIdx.x;
  long long* to = out + lane;
  auto put = [&](long long value) {
    *to = value;
    to += 32;
  };
  put(__shfl_sync(kAll, lane * 10, 5));
  put(__shfl_sync(kAll, lane * 10, lane + 3, 8));
  put(__shfl_up_sync(kAll, lane, 3));
  put(__shfl_up_sync(kAll, lane, 1, 4));
  put(__shfl_down_sync(kAll, lane, 3));
  put(__shfl_down_sync(kAll, lane, 2, 16));
  put(__shfl_xor_sync(kAll, lane, 5));
  put(__shfl_xor_sync(kAll, lane, 16, 8));
  put(__shfl_sync(kAll, lane * 0x100000001ll, 31 - lane));
  put(static_cast<long long>(__shfl_down_sync(kAll, lane * 0.5, 1) * 2));
  put(static_cast<long long>(__shfl_xor_sync(kAll, lane * 0.25f, 2) * 4));
}

/// Where the value of a shuffle comes from: its own lane where the source is out of the segment.
int source_of(int k, int lane) {
  int width = k == 1 || k == 7 ? 8 : k == 3 ? 4 : k == 5 ? 16 : 32, first = lane / width * width;
  int from = lane;
  if (k == 0) from = 5;
  if (k == 1) from = first + (lane + 3) % width;
  if (k == 2 || k == 3) from = lane - (k == 2 ? 3 : 1);
  if (k == 4 || k == 5) from = lane + (k == 4 ? 3 : 2);
  if (k == 6) from = lane ^ 5;
  if (k == 7) from = lane ^ 16;
  if (k == 8) from = 31 - lane;
  if (k == 9) from = lane + 1;
  if (k == 10) from = lane ^ 2;
  // xor reads earlier segments, not later ones.
  bool stays = from >= first + width || (from < first && k != 7);
  return stays ? lane : from;
}

__global__ void collect(unsigned* out) {
  unsigned lane = threadIdx.x;
  unsigned* to = out + lane;
  auto put = [&](unsigned value) {
    *to = value;
    to += 32;
  };
  put(__ballot_sync(kAll, lane % 3 == 0));
  put(__all_sync(kAll, lane < 32) * 2 + __all_sync(kAll, lane != 7));
  put(__any_sync(kAll, lane == 9) * 2 + __any_sync(kAll, lane == 40));
  put(__match_any_sync(kAll, lane / 5));
  put(__match_any_sync(kAll, lane % 2 == 0 ? 1ull << 40 : 5ull));
  int agree = 0;
  put(__match_all_sync(kAll, 17, &agree) + agree);
  put(__match_all_sync(kAll, lane / 31, &agree) + agree);
  put(__reduce_add_sync(kAll, lane * lane));
  put(static_cast<unsigned>(__reduce_min_sync(kAll, static_cast<int>(lane) - 10)));
  put(__reduce_max_sync(kAll, lane ^ 21));
  put(__reduce_and_sync(kAll, lane | 0xf0));
  put(__reduce_or_sync(kAll, 1u << lane / 2));
  put(__reduce_xor_sync(kAll, lane * 7));
  put(__activemask());
  // Two parts of the warp, each with a mask of its own.
  bool is_odd = lane % 2 == 1;
  unsigned half = is_odd ? 0xaaaaaaaa : 0x55555555;
  unsigned sum, votes, partner;
  if (is_odd) {
    sum = __reduce_add_sync(half, lane);
    votes = __ballot_sync(half, lane > 16);
    partner = __shfl_xor_sync(half, lane, 2);
  } else {
    sum = __reduce_add_sync(half, 2 * lane);
    votes = __ballot_sync(half, lane < 8);
    partner = __shfl_down_sync(half, lane, 4, 8);
  }
  __syncwarp();
  put(sum);
  put(votes);
  put(partner);
}

std::vector<unsigned> expected(unsigned lane) {
  unsigned thirds = 0, same = 0, squares = 0, most = 0, mixed = 0, parity = 0;
  bool is_odd = lane % 2 == 1;
  unsigned sum = 0, votes = 0;
  for (unsigned i = 0; i < 32; ++i) {
    thirds |= (i % 3 == 0) << i;
    same |= (i / 5 == lane / 5) << i;
    squares += i * i;
    most = std::max(most, i ^ 21);
    mixed ^= i * 7;
    parity |= (i % 2 == lane % 2) << i;
    if (i % 2 == lane % 2) {
      sum += is_odd ? i : 2 * i;
      votes |= (is_odd ? i > 16 : i < 8) << i;
    }
  }
  unsigned down = lane % 8 + 4 < 8 ? lane + 4 : lane;
  return {thirds,
          2,
          2,
          same,
          parity,
          kAll + 1,
          0,
          squares,
          static_cast<unsigned>(-10),
          most,
          0xf0,
          0xffff,
          mixed,
          kAll,
          sum,
          votes,
          is_odd ? lane ^ 2 : down};
}

int main() {
  Array<long long> shuffled(11 * 32);
  shuffle<<<1, 32>>>(shuffled.device);
  shuffled.to_host();
  for (int k = 0; k < 11; ++k) {
    for (int lane = 0; lane < 32; ++lane) {
      long long from = source_of(k, lane), scale = k < 2 ? 10 : k == 8 ? 0x100000001ll : 1;
      EXPECT_EQUAL(shuffled.host[k * 32 + lane], from * scale);
    }
  }
  size_t results = expected(0).size();
  Array<unsigned> collected(results * 32);
  collect<<<1, 32>>>(collected.device);
  collected.to_host();
  for (unsigned lane = 0; lane < 32; ++lane) {
    std::vector<unsigned> wanted = expected(lane);
    for (size_t k = 0; k < results; ++k) {
      if (collected.host[k * 32 + lane] != wanted[k]) fprintf(stderr, "result %zu: ", k);
      EXPECT_EQUAL(collected.host[k * 32 + lane], wanted[k]);
    }
  }
  return failures();
}
