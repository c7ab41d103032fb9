#include "tasks/reduction.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "base/random.h"

namespace cb::tasks {
namespace {

constexpr int kAllRanks = -1;

int accumulator_bits(Dtype dtype) { return dtype == Dtype::kF64 ? 53 : 24; }

/// Range of the exponent that all ranks share: wide enough to cross many binades, narrow enough
/// that f16 sums of 2^24 units neither overflow nor lose bits to subnormals.
struct ExponentRange {
  int min;
  int max;
};
ExponentRange shared_range(Dtype dtype) {
  return dtype == Dtype::kF16 ? ExponentRange{-20, -9} : ExponentRange{-30, 30};
}

bool is_signed_integer(Dtype dtype) { return dtype == Dtype::kI32 || dtype == Dtype::kI64; }

int64_t as_signed(Dtype dtype, uint64_t bits) {
  return dtype == Dtype::kI32 ? static_cast<int32_t>(bits) : static_cast<int64_t>(bits);
}

}  // namespace

const std::vector<std::string>& reduce_op_names() {
  static const std::vector<std::string> names = {"sum", "prod", "min", "max"};
  return names;
}

ReduceOp reduce_op_from_name(std::string_view name) {
  const std::vector<std::string>& names = reduce_op_names();
  auto found = std::find(names.begin(), names.end(), name);
  CB_CHECK(found != names.end(), fmt::format("unknown reduction {}", name));
  return static_cast<ReduceOp>(found - names.begin());
}

class Reduction::InputContent final : public Content {
 public:
  InputContent(std::shared_ptr<const Reduction> owner, int rank)
      : owner_(std::move(owner)), rank_(rank) {}
  void produce(uint64_t offset, std::span<std::byte> out) const override {
    size_t size = element_bytes(owner_->dtype_);
    if (owner_->is_float_sum()) {
      std::span<const uint64_t> seed(&owner_->rank_seeds_[static_cast<size_t>(rank_)], 1);
      return produce_float_sums(owner_->dtype_, owner_->sum_shape(), seed, offset / size,
                                out.size() / size, out.data());
    }
    for (size_t at = 0; at < out.size(); at += size) {
      store_bits(owner_->dtype_, owner_->input_bits(rank_, (offset + at) / size), out.data() + at);
    }
  }

 private:
  std::shared_ptr<const Reduction> owner_;
  int rank_;
};

class Reduction::ResultContent final : public Content {
 public:
  ResultContent(std::shared_ptr<const Reduction> owner, int without)
      : owner_(std::move(owner)), without_(without) {}
  void produce(uint64_t offset, std::span<std::byte> out) const override {
    size_t size = element_bytes(owner_->dtype_);
    if (owner_->is_float_sum()) {
      std::vector<uint64_t> seeds = owner_->rank_seeds_;
      if (without_ != kAllRanks) seeds.erase(seeds.begin() + without_);
      return produce_float_sums(owner_->dtype_, owner_->sum_shape(), seeds, offset / size,
                                out.size() / size, out.data());
    }
    for (size_t at = 0; at < out.size(); at += size) {
      store_bits(owner_->dtype_, owner_->result_bits((offset + at) / size, without_),
                 out.data() + at);
    }
  }

 private:
  std::shared_ptr<const Reduction> owner_;
  int without_;
};

Reduction::Reduction(Dtype dtype, ReduceOp op, std::vector<uint64_t> rank_seeds,
                     uint64_t shared_seed)
    : dtype_(dtype), op_(op), rank_seeds_(std::move(rank_seeds)), shared_seed_(shared_seed) {
  if (!is_float(dtype)) return;
  int own_bits = significand_bits(dtype);
  if (op == ReduceOp::kProd) {
    CB_CHECK(world_size() <= kMaxProductRanks, "too many ranks for exact products");
    term_bits_ = std::clamp(accumulator_bits(dtype) / world_size(), 1, own_bits);
  } else if (op == ReduceOp::kSum) {
    int carry_bits = std::bit_width(rank_seeds_.size() - 1);
    int budget = accumulator_bits(dtype) - carry_bits;
    term_bits_ = std::min(own_bits, budget);
    spread_bits_ = budget - term_bits_;
  }
}

std::shared_ptr<const Content> Reduction::input(int rank) const {
  return std::make_shared<InputContent>(shared_from_this(), rank);
}
std::shared_ptr<const Content> Reduction::result() const {
  return std::make_shared<ResultContent>(shared_from_this(), kAllRanks);
}
std::shared_ptr<const Content> Reduction::result_without(int rank) const {
  return std::make_shared<ResultContent>(shared_from_this(), rank);
}

uint64_t Reduction::integer(int rank, uint64_t index) const {
  uint64_t value = CounterRandom(rank_seeds_[static_cast<size_t>(rank)]).value(index);
  // Products of arbitrary integers are even so often that most would wrap to zero.
  bool keep_even = value >> 60 == 0;
  return op_ == ReduceOp::kProd && !keep_even ? value | 1 : value;
}

SumShape Reduction::sum_shape() const {
  ExponentRange range = shared_range(dtype_);
  return {.term_bits = term_bits_,
          .spread_bits = spread_bits_,
          .exponent_min = range.min,
          .exponent_width = static_cast<uint64_t>(range.max - range.min) + 1,
          .shared_seed = shared_seed_};
}

Reduction::Term Reduction::product_term(int rank, uint64_t index) const {
  uint64_t random = CounterRandom(rank_seeds_[static_cast<size_t>(rank)]).value(index);
  uint64_t top = uint64_t{1} << (term_bits_ - 1);
  auto units = static_cast<int64_t>((random & (top - 1)) | top | 1);
  int halved = static_cast<int>(random >> 62 & 1);
  return {random >> 63 != 0 ? -units : units, 1 - term_bits_ - halved};
}

uint64_t Reduction::extremum_bits(int rank, uint64_t index) const {
  uint64_t random = CounterRandom(rank_seeds_[static_cast<size_t>(rank)]).value(index);
  std::byte bytes[sizeof(uint64_t)];
  store_bits(Dtype::kI64, random, bytes);
  uint64_t bits = load_bits(dtype_, bytes);
  double value = decode_float(dtype_, bits);
  if (value == 0) return 0;
  // NaN and infinity lose the top bit of their exponent and become ordinary numbers.
  uint64_t exponent_top = uint64_t{1} << (8 * element_bytes(dtype_) - 2);
  return std::isfinite(value) ? bits : bits & ~exponent_top;
}

uint64_t Reduction::input_bits(int rank, uint64_t index) const {
  if (!is_float(dtype_)) return integer(rank, index);
  if (op_ == ReduceOp::kMin || op_ == ReduceOp::kMax) return extremum_bits(rank, index);
  Term term = product_term(rank, index);
  return encode_float(dtype_, static_cast<double>(term.units) * power_of_two(term.exponent));
}

uint64_t Reduction::result_bits(uint64_t index, int without) const {
  return is_float(dtype_) ? float_result(index, without) : integer_result(index, without);
}

uint64_t Reduction::integer_result(uint64_t index, int without) const {
  bool first = true;
  uint64_t result = 0;
  std::byte bytes[sizeof(uint64_t)];
  for (int rank = 0; rank < world_size(); ++rank) {
    if (rank == without) continue;
    store_bits(Dtype::kI64, integer(rank, index), bytes);
    uint64_t value = load_bits(dtype_, bytes);
    bool less = is_signed_integer(dtype_) ? as_signed(dtype_, value) < as_signed(dtype_, result)
                                          : value < result;
    if (op_ == ReduceOp::kSum && !first) {
      result += value;
    } else if (op_ == ReduceOp::kProd && !first) {
      result *= value;
    } else if (first || (op_ == ReduceOp::kMin) == less) {
      result = value;
    }
    first = false;
  }
  return result;
}

uint64_t Reduction::float_result(uint64_t index, int without) const {
  bool first = true;
  int64_t units = 1;
  int exponent = 0;
  uint64_t extremum = 0;
  for (int rank = 0; rank < world_size(); ++rank) {
    if (rank == without) continue;
    if (op_ == ReduceOp::kProd) {
      Term term = product_term(rank, index);
      units *= term.units;
      exponent += term.exponent;
    } else {
      uint64_t bits = extremum_bits(rank, index);
      bool less = decode_float(dtype_, bits) < decode_float(dtype_, extremum);
      if (first || (op_ == ReduceOp::kMin) == less) extremum = bits;
    }
    first = false;
  }
  if (op_ == ReduceOp::kMin || op_ == ReduceOp::kMax) return extremum;
  return encode_float(dtype_, static_cast<double>(units) * power_of_two(exponent));
}

}  // namespace cb::tasks
