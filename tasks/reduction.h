#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/family.h"
#include "tasks/numbers.h"
#include "tasks/reduction_sums.h"

namespace cb::tasks {

/// Same order as cb_redop of <commbench/task.h>.
enum class ReduceOp : uint8_t { kSum, kProd, kMin, kMax };
const std::vector<std::string>& reduce_op_names();
ReduceOp reduce_op_from_name(std::string_view name);

/// The most ranks over which products of floats stay exact.
inline constexpr int kMaxProductRanks = 16;

/// The inputs of a reduction and its only right result.
///
/// Integers have full entropy and wrap around. Floats are chosen so that the result is exact in
/// the accumulator that the statements ask for, fp32 (fp64 for f64), whatever the order, and not
/// in a narrower one: sums add integers times a power of two that all ranks share, with as many
/// significant bits in total as the accumulator has. The result is the exact value rounded once to
/// the element type, so it is compared bit by bit, and replicas come out identical. Neither -0.0
/// nor NaN occurs, whose treatment differs between correct programs.
class Reduction : public std::enable_shared_from_this<Reduction> {
 public:
  /// `rank_seeds` are independent of each other; `shared_seed` shapes what ranks have in common.
  Reduction(Dtype dtype, ReduceOp op, std::vector<uint64_t> rank_seeds, uint64_t shared_seed);

  /// Elements [first, ...) of a rank's input, or of the result, as long as they are asked for.
  std::shared_ptr<const Content> input(int rank) const;
  std::shared_ptr<const Content> result() const;
  /// The result of a program that forgets one rank.
  std::shared_ptr<const Content> result_without(int rank) const;

 private:
  class InputContent;
  class ResultContent;

  int world_size() const { return static_cast<int>(rank_seeds_.size()); }
  /// One input element: a plain integer, or a float as units * 2^exponent.
  struct Term {
    int64_t units = 0;
    int exponent = 0;
  };
  bool is_float_sum() const { return op_ == ReduceOp::kSum && is_float(dtype_); }
  SumShape sum_shape() const;
  uint64_t integer(int rank, uint64_t index) const;
  Term product_term(int rank, uint64_t index) const;
  uint64_t extremum_bits(int rank, uint64_t index) const;

  uint64_t input_bits(int rank, uint64_t index) const;
  uint64_t result_bits(uint64_t index, int without) const;
  uint64_t integer_result(uint64_t index, int without) const;
  uint64_t float_result(uint64_t index, int without) const;

  Dtype dtype_;
  ReduceOp op_;
  std::vector<uint64_t> rank_seeds_;
  uint64_t shared_seed_;
  int term_bits_ = 0;    ///< significant bits of one float input
  int spread_bits_ = 0;  ///< further left shift of up to this many bits
};

}  // namespace cb::tasks
