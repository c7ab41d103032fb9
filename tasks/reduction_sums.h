#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tasks/numbers.h"

namespace cb::tasks {

/// How the terms of exact float sums are drawn; see Reduction.
struct SumShape {
  int term_bits = 0;
  int spread_bits = 0;
  int exponent_min = 0;
  uint64_t exponent_width = 1;
  uint64_t shared_seed = 0;
};

/// Writes elements [first, first + count) of the sum over the ranks whose seeds are given, as
/// `dtype` (a float type). Most of grading is this loop.
void produce_float_sums(Dtype dtype, const SumShape& shape, std::span<const uint64_t> rank_seeds,
                        uint64_t first, size_t count, std::byte* out);

}  // namespace cb::tasks
