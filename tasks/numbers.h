#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// The element types of candidates, in exact arithmetic that does not depend on a GPU.
namespace cb::tasks {

/// Same order as cb_dtype of <commbench/task.h>.
enum class Dtype : uint8_t { kU8, kI32, kI64, kF16, kBf16, kF32, kF64 };

/// Names as cards write them, in the order of the enumeration.
const std::vector<std::string>& dtype_names();
/// The type of that name. The name must be one of dtype_names().
Dtype dtype_from_name(std::string_view name);

size_t element_bytes(Dtype type);
bool is_float(Dtype type);
/// Bits of the significand, the hidden one included: 11 for f16, 8 for bf16. Floats only.
int significand_bits(Dtype type);

/// 2^exponent, for exponents of normal doubles.
double power_of_two(int exponent);
/// The value of a float type's bits; exact.
double decode_float(Dtype type, uint64_t bits);
/// `value` rounded once, to nearest even, with subnormals, to infinity where it is too large.
uint64_t encode_float(Dtype type, double value);

/// The element at `data` as unsigned bits, zero-extended.
uint64_t load_bits(Dtype type, const std::byte* data);
void store_bits(Dtype type, uint64_t bits, std::byte* data);

/// For findings: the value and its bits, "1.5 (0x3fc0)", "-7 (0xfffffff9)".
std::string format_element(Dtype type, const std::byte* data);

}  // namespace cb::tasks
