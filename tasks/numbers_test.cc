#include "tasks/numbers.h"

#include <gtest/gtest.h>

#include <cmath>

namespace cb::tasks {
namespace {

class SixteenBitFloats : public ::testing::TestWithParam<Dtype> {
 protected:
  uint64_t infinity() const { return GetParam() == Dtype::kF16 ? 0x7c00 : 0x7f80; }
  double value(uint64_t bits) const { return decode_float(GetParam(), bits); }
  uint64_t bits(double value) const { return encode_float(GetParam(), value); }
};

TEST_P(SixteenBitFloats, EveryNumberSurvivesARoundTrip) {
  for (uint64_t b = 0; b <= infinity(); ++b) {
    ASSERT_EQ(bits(value(b)), b);
    ASSERT_EQ(bits(-value(b)), b | 0x8000);
  }
}

TEST_P(SixteenBitFloats, OtherNumbersGoToTheNearestAndTiesToEven) {
  for (uint64_t b = 0; b + 1 < infinity(); ++b) {
    double low = value(b);
    double high = value(b + 1);
    double middle = low + (high - low) / 2;
    ASSERT_EQ(bits(middle), b % 2 == 0 ? b : b + 1);
    ASSERT_EQ(bits(std::nextafter(middle, 0)), b);
    ASSERT_EQ(bits(std::nextafter(middle, INFINITY)), b + 1);
  }
}

TEST_P(SixteenBitFloats, TooLargeNumbersBecomeInfinity) {
  double largest = value(infinity() - 1);
  double step = largest - value(infinity() - 2);
  EXPECT_EQ(bits(std::nextafter(largest + step / 2, 0)), infinity() - 1);
  EXPECT_EQ(bits(largest + step / 2), infinity());
  EXPECT_EQ(bits(1e300), infinity());
}

TEST_P(SixteenBitFloats, SpecialValuesDecode) {
  EXPECT_TRUE(std::isinf(value(infinity())));
  EXPECT_TRUE(std::isnan(value(infinity() + 1)));
  EXPECT_TRUE(std::signbit(value(0x8000)));
}

INSTANTIATE_TEST_SUITE_P(Types, SixteenBitFloats, ::testing::Values(Dtype::kF16, Dtype::kBf16));

TEST(Floats, KnownBitPatterns) {
  EXPECT_EQ(encode_float(Dtype::kBf16, 1.5), 0x3fc0u);
  EXPECT_EQ(encode_float(Dtype::kF16, 65504), 0x7bffu);
  EXPECT_EQ(encode_float(Dtype::kF16, std::ldexp(1, -24)), 1u);
  EXPECT_EQ(encode_float(Dtype::kF32, 1.5), 0x3fc00000u);
  EXPECT_EQ(encode_float(Dtype::kF64, 1.5), 0x3ff8000000000000u);
  EXPECT_EQ(decode_float(Dtype::kF32, 0x00000001), std::ldexp(1, -149));
}

TEST(FormatElement, ShowsValueAndBits) {
  auto text = [](Dtype type, uint64_t bits) {
    std::byte data[8];
    store_bits(Dtype::kI64, bits, data);
    return format_element(type, data);
  };
  EXPECT_EQ(text(Dtype::kU8, 171), "171 (0xab)");
  EXPECT_EQ(text(Dtype::kI32, 0xfffffff9), "-7 (0xfffffff9)");
  EXPECT_EQ(text(Dtype::kI64, ~uint64_t{0}), "-1 (0xffffffffffffffff)");
  EXPECT_EQ(text(Dtype::kBf16, 0x3fc0), "1.5 (0x3fc0)");
  EXPECT_EQ(text(Dtype::kF32, 0x7fc00000), "nan (0x7fc00000)");
}

}  // namespace
}  // namespace cb::tasks
