// mov, packing and unpacking, predicate logic, selp and slct.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "simulator/exec/alu_check.h"

namespace cb::sim {
namespace {

TEST(AluMove, CopiesRegistersAndConstants) {
  LaneModel copy = returns([](const uint64_t* in) { return in[0]; });
  for (const char* text :
       {"mov.b16 %h0, %h1;", "mov.u16 %h0, %h1;", "mov.s16 %h0, 7;", "mov.u32 %r0, %r1;",
        "mov.b32 %r0, -1;", "mov.b32 %f0, %r1;", "mov.f32 %f0, 0f3F800000;", "mov.f32 %f0, %f1;",
        "mov.s64 %rd0, %rd1;", "mov.b64 %fd0, %rd1;", "mov.f64 %fd0, 0d3FF0000000000000;"}) {
    check_alu({text, copy});
  }
}

TEST(AluMove, PacksAndUnpacks) {
  auto pack = [](int parts, int bits) {
    return returns([=](const uint64_t* in) {
      uint64_t whole = 0;
      for (int k = parts; k-- > 0;) whole = whole << bits | in[k];
      return whole;
    });
  };
  auto unpack = [](int parts, int bits) -> LaneModel {
    return [=](const uint64_t* in, uint64_t* out) {
      for (int k = 0; k < parts; ++k) out[k] = in[0] >> (bits * k);
    };
  };
  check_alu({"mov.b16 %h0, {%b1, %b2};", pack(2, 8)});
  check_alu({"mov.b32 %r0, {%h1, %h2};", pack(2, 16)});
  check_alu({"mov.b32 %r0, {%b1, %b2, %b3, %b4};", pack(4, 8)});
  check_alu({"mov.b64 %rd0, {%r1, %r2};", pack(2, 32)});
  check_alu({"mov.b64 %rd0, {%r1, %r1};", pack(2, 32)});
  check_alu({"mov.b64 %rd0, {%r1, 5};", pack(2, 32)});
  check_alu({"mov.b64 %rd0, {%f1, %r2};", pack(2, 32)});
  check_alu({"mov.b64 %rd0, {%h1, %h2, %h3, %h4};", pack(4, 16)});
  check_alu({"mov.b16 {%b0, %b1}, %h2;", unpack(2, 8)});
  check_alu({"mov.b32 {%h0, %h1}, %r2;", unpack(2, 16)});
  check_alu({"mov.b32 {%b0, %b1, %b2, %b3}, %r2;", unpack(4, 8)});
  check_alu({"mov.b64 {%r0, %r1}, %rd2;", unpack(2, 32), {}, {}, 200});
  check_alu({"mov.b64 {%r0, _}, %rd2;", unpack(2, 32)});
  check_alu({"mov.b64 {_, %r0}, %rd2;", unpack(2, 32)});
  check_alu({"mov.b64 {%f0, %r1}, %fd2;", unpack(2, 32)});
  check_alu({"mov.b64 {%h0, %h1, %h2, %h3}, %rd2;", unpack(4, 16)});
}

/// The lanes of %q0 and others are 128 bits, which the models' 64-bit values cannot hold.
TEST(AluMove, MovesOneHundredAndTwentyEightBits) {
  LaneValues low, high, old;
  for (size_t i = 0; i < kLanes; ++i) {
    low.low[i] = 0x1111111122222222 * (i + 1);
    high.low[i] = 0x3333333355555555 * (i + 3);
    old.low[i] = i;
    old.high[i] = 100 + i;
  }
  for (uint32_t mask : {kAllLanes, 0x0ff0f00fu}) {
    AluRig pack("mov.b128 %q0, {%rd1, %rd2};");
    auto reg = [&](const AluRig& rig, size_t k) { return rig.operands()[k].reg; };
    pack.context().mask = mask;
    pack.context().full = mask == kAllLanes;
    pack.set_vector(reg(pack, 0), low);
    pack.set_vector(reg(pack, 1), high);
    pack.set_vector(reg(pack, 2), old);
    pack.run();
    LaneValues packed = pack.get(reg(pack, 2));
    AluRig unpack("mov.b128 {%r1, %r2, %r3, %r4}, %q0;");
    AluRig halves("mov.b128 {%rd1, %rd2}, %q0;");
    AluRig join("mov.b128 %q0, {%r1, %r2, %r3, %r4};");
    AluRig copy("mov.b128 %q0, %q1;");
    copy.set_vector(reg(copy, 1), packed);
    copy.run();
    unpack.set_vector(reg(unpack, 4), copy.get(reg(copy, 0)));
    unpack.run();
    halves.set_vector(reg(halves, 2), copy.get(reg(copy, 0)));
    halves.run();
    for (size_t k = 0; k < 4; ++k) join.set_vector(reg(join, k), unpack.get(reg(unpack, k)));
    join.run();
    LaneValues joined = join.get(reg(join, 4));
    for (const AluRig* rig : {&pack, &copy, &unpack, &halves, &join}) note_checked(rig->spec());
    for (size_t i = 0; i < kLanes; ++i) {
      bool active = (mask >> i & 1) != 0;
      uint64_t expected_low = active ? low.low[i] : old.low[i];
      uint64_t expected_high = active ? high.low[i] : old.high[i];
      EXPECT_EQ(packed.low[i], expected_low);
      EXPECT_EQ(packed.high[i], expected_high);
      for (size_t k = 0; k < 4; ++k) {
        uint64_t half = k < 2 ? expected_low : expected_high;
        EXPECT_EQ(unpack.get(reg(unpack, k)).low[i], half >> (32 * (k % 2)) & 0xffffffff);
      }
      EXPECT_EQ(halves.get(reg(halves, 0)).low[i], expected_low);
      EXPECT_EQ(halves.get(reg(halves, 1)).low[i], expected_high);
      EXPECT_EQ(joined.low[i], expected_low);
      EXPECT_EQ(joined.high[i], expected_high);
    }
  }
}

TEST(AluMove, PacksOneHundredAndTwentyEightBitsFromConstants) {
  AluRig rig("mov.b128 %q0, {%r1, 7, %r1, 9};");
  rig.set_affine(rig.operands()[0].reg, 100, 2);
  rig.run();
  LaneValues packed = rig.get(rig.operands()[4].reg);
  for (size_t i = 0; i < kLanes; ++i) {
    EXPECT_EQ(packed.low[i], 7ull << 32 | (100 + 2 * i));
    EXPECT_EQ(packed.high[i], 9ull << 32 | (100 + 2 * i));
  }
}

TEST(AluMove, CombinesPredicates) {
  auto two = [](bool (*f)(bool, bool)) {
    return returns([=](const uint64_t* in) { return f(in[0] != 0, in[1] != 0) ? 1 : 0; });
  };
  for (const char* b : {"%p2", "!%p2", "1", "0"}) {
    check_alu(
        {fmt::format("and.pred %p0, %p1, {};", b), two([](bool x, bool y) { return x && y; })});
    check_alu(
        {fmt::format("or.pred %p0, %p1, {};", b), two([](bool x, bool y) { return x || y; })});
    check_alu(
        {fmt::format("xor.pred %p0, !%p1, {};", b), two([](bool x, bool y) { return x != y; })});
  }
  check_alu({"not.pred %p0, %p1;", returns([](const uint64_t* in) { return 1 - in[0]; })});
  for (const char* text : {"mov.pred %p0, %p1;", "mov.pred %p0, -1;", "mov.pred %p0, 0;"}) {
    check_alu({text, returns([](const uint64_t* in) { return in[0]; })});
  }
}

TEST(AluMove, SelectsByPredicate) {
  LaneModel model = returns([](const uint64_t* in) { return in[2] != 0 ? in[0] : in[1]; });
  for (const char* text :
       {"selp.b16 %h0, %h1, %h2, %p1;", "selp.u32 %r0, %r1, %r2, %p1;", "selp.b32 %r0, 1, 0, %p1;",
        "selp.f32 %f0, %f1, 0f3F800000, !%p1;", "selp.b64 %rd0, %rd1, %rd2, %p1;",
        "selp.f64 %fd0, %fd1, %fd2, %p1;", "selp.s32 %r0, %r1, %r2, 1;"}) {
    check_alu({text, model, {}, {}, 96});
  }
}

TEST(AluMove, SelectsBySign) {
  LaneModel by_integer =
      returns([](const uint64_t* in) { return in[2] >> 31 == 0 ? in[0] : in[1]; });
  // A number that is not NaN, and not below zero but for -0.
  auto by_float = [](bool ftz) {
    return returns([=](const uint64_t* in) {
      uint64_t magnitude = in[2] & 0x7fffffff;
      bool zero = magnitude == 0 || (ftz && magnitude < 0x800000);
      bool first = zero || (in[2] >> 31 == 0 && magnitude <= 0x7f800000);
      return first ? in[0] : in[1];
    });
  };
  check_alu({"slct.u32.s32 %r0, %r1, %r2, %r3;", by_integer});
  check_alu({"slct.b16.s32 %h0, %h1, %h2, %r3;", by_integer});
  check_alu({"slct.f64.s32 %fd0, %fd1, %fd2, %r3;", by_integer});
  check_alu({"slct.s64.f32 %rd0, %rd1, %rd2, %f3;", by_float(false), {}, {}, 96});
  check_alu({"slct.ftz.f32.f32 %f0, %f1, %f2, %f3;", by_float(true), {}, {}, 96});
  for (const char* flush : {"", ".ftz"}) {
    for (const char* form :
         {"slct{}.b16.f32 %h0, %h1, %h2, %f3;", "slct{}.u32.f32 %r0, %r1, %r2, %f3;",
          "slct{}.f64.f32 %fd0, %fd1, %fd2, %f3;"}) {
      check_alu({fmt::format(fmt::runtime(form), flush), by_float(*flush != 0), {}, {}, 96});
    }
  }
}

}  // namespace
}  // namespace cb::sim
