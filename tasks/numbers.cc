#include "tasks/numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/check.h"

namespace cb::tasks {
namespace {

struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  uint64_t infinity() const { return ((uint64_t{1} << exponent_bits) - 1) << mantissa_bits; }
  uint64_t sign() const { return uint64_t{1} << (exponent_bits + mantissa_bits); }
};

FloatFormat float_format(Dtype type) {
  switch (type) {
    case Dtype::kF16:
      return {5, 10};
    case Dtype::kBf16:
      return {8, 7};
    case Dtype::kF32:
      return {8, 23};
    case Dtype::kF64:
      return {11, 52};
    default:
      break;
  }
  CB_CHECK(false, "not a float type");
  return {};
}

constexpr int kDoubleMantissaBits = 52;
constexpr int kDoubleBias = 1023;

}  // namespace

double power_of_two(int exponent) {
  CB_CHECK(exponent > -kDoubleBias && exponent <= kDoubleBias, "no normal power of two");
  return std::bit_cast<double>(static_cast<uint64_t>(exponent + kDoubleBias)
                               << kDoubleMantissaBits);
}

const std::vector<std::string>& dtype_names() {
  static const std::vector<std::string> names = {"u8", "i32", "i64", "f16", "bf16", "f32", "f64"};
  return names;
}

Dtype dtype_from_name(std::string_view name) {
  const std::vector<std::string>& names = dtype_names();
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<Dtype>(i);
  }
  CB_CHECK(false, fmt::format("unknown element type {}", name));
  return Dtype::kU8;
}

size_t element_bytes(Dtype type) {
  constexpr size_t kBytes[] = {1, 4, 8, 2, 2, 4, 8};
  return kBytes[static_cast<size_t>(type)];
}

bool is_float(Dtype type) { return type >= Dtype::kF16; }

int significand_bits(Dtype type) { return float_format(type).mantissa_bits + 1; }

double decode_float(Dtype type, uint64_t bits) {
  if (type == Dtype::kF64) return std::bit_cast<double>(bits);
  FloatFormat format = float_format(type);
  uint64_t magnitude = bits & (format.sign() - 1);
  uint64_t mantissa = magnitude & ((uint64_t{1} << format.mantissa_bits) - 1);
  int exponent = static_cast<int>(magnitude >> format.mantissa_bits);
  double value = 0;
  if (magnitude >= format.infinity()) {
    value = mantissa == 0 ? INFINITY : NAN;
  } else if (exponent == 0) {
    value = static_cast<double>(mantissa) * power_of_two(1 - format.bias() - format.mantissa_bits);
  } else {
    mantissa |= uint64_t{1} << format.mantissa_bits;
    value = static_cast<double>(mantissa) *
            power_of_two(exponent - format.bias() - format.mantissa_bits);
  }
  return (bits & format.sign()) != 0 ? -value : value;
}

uint64_t encode_float(Dtype type, double value) {
  if (type == Dtype::kF64) return std::bit_cast<uint64_t>(value);
  if (type == Dtype::kF32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  FloatFormat format = float_format(type);
  uint64_t bits = std::bit_cast<uint64_t>(value);
  uint64_t sign = bits >> 63 != 0 ? format.sign() : 0;
  uint64_t significand = bits & ((uint64_t{1} << kDoubleMantissaBits) - 1);
  int exponent = static_cast<int>(bits >> kDoubleMantissaBits & 0x7ff) - kDoubleBias;
  if (exponent > kDoubleBias) return sign | format.infinity() | (significand != 0 ? 1 : 0);
  significand |= uint64_t{1} << kDoubleMantissaBits;
  int min_normal = 1 - format.bias();
  bool subnormal = exponent < min_normal;
  int dropped_bits =
      kDoubleMantissaBits - format.mantissa_bits + (subnormal ? min_normal - exponent : 0);
  // Less than half of the smallest number; zero and doubles that are subnormal themselves as well.
  if (dropped_bits > kDoubleMantissaBits + 1) return sign;
  uint64_t half = uint64_t{1} << (dropped_bits - 1);
  uint64_t odd = significand >> dropped_bits & 1;
  uint64_t rounded = (significand + half - 1 + odd) >> dropped_bits;
  // Adding instead of merging lets a mantissa that rounds up to the next power of two carry into
  // the exponent.
  if (!subnormal) {
    rounded += static_cast<uint64_t>(exponent + format.bias() - 1) << format.mantissa_bits;
  }
  return sign | std::min(rounded, format.infinity());
}

uint64_t load_bits(Dtype type, const std::byte* data) {
  uint64_t bits = 0;
  std::memcpy(&bits, data, element_bytes(type));
  return bits;
}

void store_bits(Dtype type, uint64_t bits, std::byte* data) {
  std::memcpy(data, &bits, element_bytes(type));
}

std::string format_element(Dtype type, const std::byte* data) {
  uint64_t bits = load_bits(type, data);
  size_t digits = 2 * element_bytes(type);
  switch (type) {
    case Dtype::kU8:
      return fmt::format("{} ({:#04x})", bits, bits);
    case Dtype::kI32:
      return fmt::format("{} (0x{:0{}x})", static_cast<int32_t>(bits), bits, digits);
    case Dtype::kI64:
      return fmt::format("{} (0x{:0{}x})", static_cast<int64_t>(bits), bits, digits);
    default:
      break;
  }
  int precision = type == Dtype::kF64 ? 17 : 9;
  return fmt::format("{:.{}g} (0x{:0{}x})", decode_float(type, bits), precision, bits, digits);
}

}  // namespace cb::tasks
