// Bulk reductions of random operands, all operations and types, against what PTX says of them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include "simulator/exec/engine_rig.h"

namespace cb::sim {
namespace {

using Wide = __int128;

/// The element at `bits` as a number, and back, for integers of `bytes`.
Wide as_number(uint64_t bits, unsigned bytes, bool is_signed) {
  unsigned unused = 64 - 8 * bytes;
  if (is_signed) return static_cast<int64_t>(bits << unused) >> unused;
  return bits << unused >> unused;
}

double of_half(uint16_t bits, int exponent_bits) {
  int mantissa_bits = 15 - exponent_bits;
  int exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1);
  int mantissa = bits & ((1 << mantissa_bits) - 1);
  int bias = (1 << (exponent_bits - 1)) - 1;
  double value = exponent == 0
                     ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                     : std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
  return (bits & 0x8000) != 0 ? -value : value;
}

/// The nearest 16-bit number, the even one of two; `value` is finite.
uint16_t to_half(double value, int exponent_bits) {
  int mantissa_bits = 15 - exponent_bits;
  int bias = (1 << (exponent_bits - 1)) - 1;
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  double size = std::fabs(value);
  if (size == 0) return sign;
  int exponent = std::max(std::ilogb(size), 1 - bias);
  double units = std::nearbyint(std::ldexp(size, mantissa_bits - exponent));
  // Counted in units of the last place, neighbouring numbers have neighbouring patterns.
  double pattern = units + std::ldexp(exponent + bias - 1, mantissa_bits);
  double infinity = std::ldexp((1 << exponent_bits) - 1, mantissa_bits);
  return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::min(pattern, infinity)));
}

struct Reduction {
  std::string operation;  ///< with .noftz
  std::string type;
  unsigned bytes;
  bool to_shared;
};

uint64_t expected_integer(const Reduction& r, uint64_t old, uint64_t operand) {
  bool is_signed = r.type[0] == 's';
  Wide a = as_number(old, r.bytes, is_signed), b = as_number(operand, r.bytes, is_signed);
  Wide result = 0;
  if (r.operation == "add") result = a + b;
  if (r.operation == "min") result = a < b ? a : b;
  if (r.operation == "max") result = a > b ? a : b;
  if (r.operation == "inc") result = a >= b ? 0 : a + 1;
  if (r.operation == "dec") result = a == 0 || a > b ? b : a - 1;
  if (r.operation == "and") result = a & b;
  if (r.operation == "or") result = a | b;
  if (r.operation == "xor") result = a ^ b;
  return static_cast<uint64_t>(result) & (r.bytes == 8 ? ~uint64_t{0} : 0xffffffffu);
}

uint64_t expected_half(const Reduction& r, uint16_t old, uint16_t operand) {
  int exponent_bits = r.type == "f16" ? 5 : 8;
  double a = of_half(old, exponent_bits), b = of_half(operand, exponent_bits);
  if (r.operation == "add.noftz") return to_half(a + b, exponent_bits);
  bool first = r.operation == "min" ? a < b : a > b;
  return first ? old : operand;
}

uint64_t expected(const Reduction& r, uint64_t old, uint64_t operand) {
  if (r.type == "f32") {
    float sum = std::bit_cast<float>(static_cast<uint32_t>(old)) +
                std::bit_cast<float>(static_cast<uint32_t>(operand));
    return std::bit_cast<uint32_t>(sum);
  }
  if (r.type == "f64") {
    return std::bit_cast<uint64_t>(std::bit_cast<double>(old) + std::bit_cast<double>(operand));
  }
  if (r.bytes == 2) {
    return expected_half(r, static_cast<uint16_t>(old), static_cast<uint16_t>(operand));
  }
  return expected_integer(r, old, operand);
}

std::vector<Reduction> all_reductions() {
  std::vector<Reduction> all;
  auto add = [&](bool to_shared, const std::string& type, unsigned bytes,
                 std::initializer_list<const char*> operations) {
    for (const char* operation : operations) all.push_back({operation, type, bytes, to_shared});
  };
  add(false, "u32", 4, {"add", "min", "max", "inc", "dec"});
  add(false, "s32", 4, {"add", "min", "max"});
  add(false, "u64", 8, {"add", "min", "max"});
  add(false, "s64", 8, {"min", "max"});
  add(false, "b32", 4, {"and", "or", "xor"});
  add(false, "b64", 8, {"and", "or", "xor"});
  add(false, "f32", 4, {"add"});
  add(false, "f64", 8, {"add"});
  add(false, "f16", 2, {"add.noftz", "min", "max"});
  add(false, "bf16", 2, {"add.noftz", "min", "max"});
  add(true, "u32", 4, {"add", "min", "max", "inc", "dec"});
  add(true, "s32", 4, {"add", "min", "max"});
  add(true, "u64", 8, {"add"});
  add(true, "b32", 4, {"and", "or", "xor"});
  return all;
}

/// One thread gets both operands into shared memory and reduces `a` into `b`, in place or in
/// shared memory.
std::string kernel_of(const Reduction& r) {
  std::string start =
      r.to_shared
          ? "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes." +
                r.operation + "." + r.type + " [tile+1024], [tile], 1024, [bar];"
          : "cp.reduce.async.bulk.global.shared::cta.bulk_group." + r.operation + "." + r.type +
                " [%rd2], [tile], 1024; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;";
  std::string wait = R"(
  mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], )";
  std::string last = !r.to_shared ? "" : R"(
  mbarrier.arrive.expect_tx.shared.b64 _, [bar], 1024;
second:)" + wait + R"(1;
  @!%p1 bra second;
  cp.async.bulk.global.shared::cta.bulk_group [%rd2], [tile+1024], 1024;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;)";
  return R"(.shared .align 16 .b8 tile[2048];
.shared .align 8 .b8 bar[8];
.visible .entry k(.param .u64 a, .param .u64 b)
{
  .reg .pred %p<2>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b];
  mbarrier.init.shared.b64 [bar], 1;
  mbarrier.arrive.expect_tx.shared.b64 _, [bar], 2048;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd1], 1024, [bar];
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile+1024], [%rd2], 1024, [bar];
first:)" +
         wait +
         R"(0;
  @!%p1 bra first;
  )" + start +
         last + "\n  ret;\n}\n";
}

/// Random elements; floats are normal numbers whose sums are, too.
uint64_t element(const Reduction& r, std::mt19937_64& random) {
  uint64_t bits = random();
  if (r.type == "f32") {
    return std::bit_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(bits)) * 0.37f);
  }
  if (r.type == "f64") {
    return std::bit_cast<uint64_t>(static_cast<double>(static_cast<int64_t>(bits)) * 0.37);
  }
  if (r.type == "f16") return (bits & 0x8000) | (bits % 0x7800);
  if (r.type == "bf16") return (bits & 0x8000) | (bits % 0x7e80);
  // Small and equal numbers now and then, and both ends.
  if (bits % 4 == 0) return bits >> 8 & 3;
  if (bits % 16 == 1) return ~uint64_t{0};
  return bits;
}

class EngineBulk : public ::testing::TestWithParam<EngineRig::Mode> {};
INSTANTIATE_TEST_SUITE_P(Modes, EngineBulk, ::testing::ValuesIn(EngineRig::all_modes()));

TEST_P(EngineBulk, ReductionsAreThoseOfTheModel) {
  std::mt19937_64 random(11);
  for (const Reduction& r : all_reductions()) {
    EngineRig rig(kernel_of(r), GetParam());
    auto* a = rig.buffer<std::byte>(0, 1024);
    auto* b = rig.buffer<std::byte>(r.to_shared ? 0 : 1, 1024);
    std::vector<uint64_t> wanted;
    for (unsigned at = 0; at < 1024; at += r.bytes) {
      uint64_t operand = element(r, random), old = element(r, random);
      std::memcpy(a + at, &operand, r.bytes);
      std::memcpy(b + at, &old, r.bytes);
      wanted.push_back(expected(r, old, operand));
    }
    rig.launch("k", 0, {.threads = 1}, {address_of(a), address_of(b)});
    rig.run();
    ASSERT_TRUE(rig.engine().findings().empty()) << rig.engine().findings()[0].detail;
    for (size_t i = 0; i < wanted.size(); ++i) {
      uint64_t found = 0, mask = r.bytes == 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * r.bytes) - 1;
      std::memcpy(&found, b + i * r.bytes, r.bytes);
      ASSERT_EQ(found, wanted[i] & mask) << r.operation << "." << r.type << " at " << i;
    }
  }
}

}  // namespace
}  // namespace cb::sim
