#include "tasks/reduction_sums.h"

#include <immintrin.h>

#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/random.h"

namespace cb::tasks {
namespace {

// Every sum is an integer of at most 24 bits (53 for f64) times a power of two in the range of
// normal floats, so float (double) holds it exactly and one rounding is left.

struct ToF16 {
  using Bits = uint16_t;
  static Bits encode(double value) {
    return static_cast<Bits>(_cvtss_sh(static_cast<float>(value), _MM_FROUND_TO_NEAREST_INT));
  }
};

struct ToBf16 {
  using Bits = uint16_t;
  static Bits encode(double value) {
    auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
    return static_cast<Bits>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
};

struct ToF32 {
  using Bits = uint32_t;
  static Bits encode(double value) { return std::bit_cast<Bits>(static_cast<float>(value)); }
};

struct ToF64 {
  using Bits = uint64_t;
  static Bits encode(double value) { return std::bit_cast<Bits>(value); }
};

template <typename To>
void produce(const SumShape& shape, std::span<const uint64_t> rank_seeds, uint64_t first,
             size_t count, std::byte* out) {
  const uint64_t mask = (uint64_t{1} << shape.term_bits) - 1;
  const auto spread = static_cast<uint64_t>(shape.spread_bits + 1);
  const CounterRandom exponents(shape.shared_seed);
  for (size_t i = 0; i < count; ++i) {
    int64_t sum = 0;
    for (uint64_t seed : rank_seeds) {
      uint64_t random = CounterRandom(seed).value(first + i);
      auto units = static_cast<int64_t>((random & mask) << ((random >> 54 & 0xff) * spread >> 8));
      int64_t sign = -static_cast<int64_t>(random >> 63);
      sum += (units ^ sign) - sign;
    }
    int exponent =
        shape.exponent_min + static_cast<int>(exponents.below(first + i, shape.exponent_width));
    typename To::Bits bits = To::encode(static_cast<double>(sum) * power_of_two(exponent));
    std::memcpy(out + i * sizeof bits, &bits, sizeof bits);
  }
}

}  // namespace

void produce_float_sums(Dtype dtype, const SumShape& shape, std::span<const uint64_t> rank_seeds,
                        uint64_t first, size_t count, std::byte* out) {
  switch (dtype) {
    case Dtype::kF16:
      return produce<ToF16>(shape, rank_seeds, first, count, out);
    case Dtype::kBf16:
      return produce<ToBf16>(shape, rank_seeds, first, count, out);
    case Dtype::kF32:
      return produce<ToF32>(shape, rank_seeds, first, count, out);
    case Dtype::kF64:
      return produce<ToF64>(shape, rank_seeds, first, count, out);
    default:
      CB_CHECK(false, "sums of integers wrap and are made elsewhere");
  }
}

}  // namespace cb::tasks
