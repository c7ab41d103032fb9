#include "tasks/reduction.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numeric>

namespace cb::tasks {
namespace {

constexpr uint64_t kElements = 2000;

std::shared_ptr<Reduction> make(Dtype dtype, ReduceOp op, int ranks) {
  std::vector<uint64_t> seeds(static_cast<size_t>(ranks));
  std::iota(seeds.begin(), seeds.end(), 1000);
  return std::make_shared<Reduction>(dtype, op, seeds, 77);
}

std::vector<uint64_t> elements(const Content& content, Dtype dtype, uint64_t count = kElements) {
  size_t size = element_bytes(dtype);
  std::vector<std::byte> bytes(count * size);
  content.produce(0, bytes);
  std::vector<uint64_t> values;
  for (uint64_t i = 0; i < count; ++i) values.push_back(load_bits(dtype, bytes.data() + i * size));
  return values;
}

struct FloatCase {
  Dtype dtype;
  ReduceOp op;
  int ranks;
};

class FloatReductions : public ::testing::TestWithParam<FloatCase> {
 protected:
  void SetUp() override {
    auto reduction = make(GetParam().dtype, GetParam().op, GetParam().ranks);
    for (int rank = 0; rank < GetParam().ranks; ++rank) {
      inputs.push_back(elements(*reduction->input(rank), GetParam().dtype));
    }
    results = elements(*reduction->result(), GetParam().dtype);
  }

  /// The reduction in an accumulator of type `accumulator`, in the order of `ranks`.
  uint64_t reduce_in(Dtype accumulator, uint64_t index, bool reversed) const {
    auto [dtype, op, ranks] = GetParam();
    double value = 0;
    for (int i = 0; i < ranks; ++i) {
      auto rank = static_cast<size_t>(reversed ? ranks - 1 - i : i);
      double term = decode_float(dtype, inputs[rank][index]);
      double next = op == ReduceOp::kSum ? value + term : value * term;
      value = i == 0 ? term : decode_float(accumulator, encode_float(accumulator, next));
    }
    return encode_float(dtype, value);
  }
  double wrong_share(Dtype accumulator) const {
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < kElements; ++i) {
      if (reduce_in(accumulator, i, false) != results[i]) ++wrong;
    }
    return static_cast<double>(wrong) / kElements;
  }

  std::vector<std::vector<uint64_t>> inputs;
  std::vector<uint64_t> results;
};

TEST_P(FloatReductions, AreExactInTheRequiredAccumulatorInAnyOrder) {
  Dtype accumulator = GetParam().dtype == Dtype::kF64 ? Dtype::kF64 : Dtype::kF32;
  for (uint64_t i = 0; i < kElements; ++i) {
    ASSERT_EQ(reduce_in(accumulator, i, false), results[i]) << "element " << i;
    ASSERT_EQ(reduce_in(accumulator, i, true), results[i]) << "element " << i;
  }
}

TEST_P(FloatReductions, AreWrongInANarrowerAccumulator) {
  auto [dtype, op, ranks] = GetParam();
  if (dtype == Dtype::kF64) {
    EXPECT_GT(wrong_share(Dtype::kF32), 0.5);
    return;
  }
  // Of two ranks, one rounding of the sum is all that any accumulator of the own type does.
  if (ranks == 2 && dtype != Dtype::kF32) return;
  EXPECT_GT(wrong_share(Dtype::kBf16), 0.05);
  if (dtype == Dtype::kBf16) return;
  EXPECT_GT(wrong_share(Dtype::kF16), 0.05);
}

TEST_P(FloatReductions, AvoidValuesOnWhichCorrectProgramsDiffer) {
  Dtype dtype = GetParam().dtype;
  for (const auto& input : inputs) {
    for (uint64_t bits : input) {
      double value = decode_float(dtype, bits);
      ASSERT_TRUE(std::isfinite(value));
      ASSERT_FALSE(value == 0 && std::signbit(value));
    }
  }
  for (uint64_t bits : results) ASSERT_TRUE(std::isfinite(decode_float(dtype, bits)));
}

std::vector<FloatCase> float_cases() {
  std::vector<FloatCase> cases;
  for (Dtype dtype : {Dtype::kF16, Dtype::kBf16, Dtype::kF32, Dtype::kF64}) {
    for (ReduceOp op : {ReduceOp::kSum, ReduceOp::kProd}) {
      for (int ranks : {2, 3, 8}) cases.push_back({dtype, op, ranks});
    }
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(All, FloatReductions, ::testing::ValuesIn(float_cases()));

TEST(Reduction, ExtremaOfFloatsAreOrdinaryNumbers) {
  for (Dtype dtype : {Dtype::kF16, Dtype::kBf16, Dtype::kF32, Dtype::kF64}) {
    auto reduction = make(dtype, ReduceOp::kMax, 3);
    std::vector<std::vector<uint64_t>> inputs = {elements(*reduction->input(0), dtype),
                                                 elements(*reduction->input(1), dtype),
                                                 elements(*reduction->input(2), dtype)};
    std::vector<uint64_t> results = elements(*reduction->result(), dtype);
    for (uint64_t i = 0; i < kElements; ++i) {
      double largest = -INFINITY;
      for (const auto& input : inputs) {
        ASSERT_TRUE(std::isfinite(decode_float(dtype, input[i])));
        largest = std::max(largest, decode_float(dtype, input[i]));
      }
      ASSERT_EQ(decode_float(dtype, results[i]), largest);
    }
  }
}

TEST(Reduction, IntegersWrapAround) {
  auto sum = make(Dtype::kU8, ReduceOp::kSum, 3);
  auto product = make(Dtype::kI32, ReduceOp::kProd, 3);
  std::vector<uint64_t> a = elements(*sum->result(), Dtype::kU8);
  std::vector<uint64_t> b = elements(*product->result(), Dtype::kI32);
  uint8_t byte_sum[kElements] = {};
  std::vector<uint32_t> products(kElements, 1);
  for (int rank = 0; rank < 3; ++rank) {
    std::vector<uint64_t> bytes = elements(*sum->input(rank), Dtype::kU8);
    std::vector<uint64_t> words = elements(*product->input(rank), Dtype::kI32);
    for (uint64_t i = 0; i < kElements; ++i) {
      byte_sum[i] = static_cast<uint8_t>(byte_sum[i] + bytes[i]);
      products[i] *= static_cast<uint32_t>(words[i]);
    }
  }
  for (uint64_t i = 0; i < kElements; ++i) {
    ASSERT_EQ(a[i], byte_sum[i]);
    ASSERT_EQ(b[i], products[i]);
  }
}

TEST(Reduction, ProductsOfBytesRarelyVanish) {
  std::vector<uint64_t> results =
      elements(*make(Dtype::kU8, ReduceOp::kProd, 8)->result(), Dtype::kU8);
  auto zeros = std::count(results.begin(), results.end(), 0u);
  EXPECT_LT(zeros, static_cast<ptrdiff_t>(kElements / 20));
}

TEST(Reduction, ContentsDoNotDependOnHowTheyAreRead) {
  auto content = make(Dtype::kBf16, ReduceOp::kSum, 3)->result();
  std::vector<std::byte> whole(400);
  content->produce(0, whole);
  std::vector<std::byte> piece(100);
  content->produce(150, piece);
  EXPECT_TRUE(std::equal(piece.begin(), piece.end(), whole.begin() + 150));
}

}  // namespace
}  // namespace cb::tasks
