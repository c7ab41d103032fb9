#pragma once

/// Building blocks that are not transfers by themselves. Each task's statement says which fields
/// it uses; the others are zero.

#include <commbench/task.h>

struct cb_args {
  uint64_t max_rounds;  ///< the largest `rounds` of any step
  uint32_t num_buffers;
  const cb_span* buffers;  ///< [num_buffers]: every span of a step lies in these
};

struct cb_step {
  uint64_t rounds;  ///< may be 0, may change from step to step
  cb_span input;
  cb_span output;
};

/// The mixing of chained exchanges: the value of `rank` after a round is a function of the values
/// that all ranks had before it, in rank order, so that one missing or stale value changes it.
///
///   uint64_t v = cb_mix_begin(rank);
///   for (int r = 0; r < world_size; ++r) v = cb_mix_add(v, value_of_rank[r]);
__host__ __device__ inline uint64_t cb_mix_begin(int rank) {
  return 0x9e3779b97f4a7c15ull * (uint64_t)(rank + 1);
}

__host__ __device__ inline uint64_t cb_mix_add(uint64_t v, uint64_t value) {
  v = (v ^ value) * 0xff51afd7ed558ccdull;
  return v ^ (v >> 29);
}
