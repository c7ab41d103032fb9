// What find_alu refuses and how it says so, the reading of constants, and which operations keep
// affine operands affine.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <filesystem>

#include "base/file.h"
#include "simulator/exec/alu_rig.h"

namespace cb::sim {
namespace {

using testing::Contains;
using testing::HasSubstr;

std::string refusal(const std::string& text) {
  AluRig rig(text);
  if (!rig.answer().has_value()) return "not an ALU instruction";
  return rig.answer()->has_value() ? "accepted" : rig.answer()->error().message();
}

TEST(AluQuery, NamesTheModifierThatItRefuses) {
  EXPECT_THAT(refusal("fma.rn.oob.f16 %h0, %h1, %h2, %h3;"),
              HasSubstr("fma.rn.oob.f16: the modifier .oob"));
  EXPECT_THAT(refusal("add.sat.u32 %r0, %r1, %r2;"), HasSubstr(".sat"));
  EXPECT_THAT(refusal("add.rn.f32x2 %rd0, %rd1, %rd2;"), HasSubstr("add.rn.f32x2"));
  EXPECT_THAT(refusal("cvt.rs.f16x2.f32 %r0, %f1, %f2, %r3;"), HasSubstr(".rs"));
  EXPECT_THAT(refusal("add.ftz.f64 %fd0, %fd1, %fd2;"), HasSubstr(".ftz"));
  EXPECT_THAT(refusal("setp.lo.s32 %p0, %r1, %r2;"), HasSubstr(".lo"));
  EXPECT_THAT(refusal("min.f32 %f0, %f1, %f2, %f3;"), HasSubstr("sm_100"));
  EXPECT_THAT(refusal("cvt.rn.bf16x2.e4m3x2 %r0, %h1;"), HasSubstr(".bf16x2"));
}

TEST(AluQuery, SaysWhereTheInstructionIs) {
  EXPECT_THAT(refusal("add.sat.u32 %r0, %r1, %r2;"), HasSubstr("ptx:14: "));
}

TEST(AluQuery, RefusesMissingRoundings) {
  EXPECT_THAT(refusal("cvt.f16.f32 %h0, %f1;"), HasSubstr("one of .rn, .rz, .rm, .rp"));
  EXPECT_THAT(refusal("cvt.s32.f32 %r0, %f1;"), HasSubstr("one of .rni"));
  EXPECT_THAT(refusal("cvt.rn.f64.f32 %fd0, %f1;"), HasSubstr("no rounding"));
  EXPECT_THAT(refusal("fma.f32 %f0, %f1, %f2, %f3;"), HasSubstr("rounding"));
}

TEST(AluQuery, RefusesRegistersOfTheWrongWidth) {
  EXPECT_THAT(refusal("add.u32 %r0, %h1, %r2;"),
              HasSubstr("operand 2, %h1, is declared .b16 but .u32"));
  EXPECT_THAT(refusal("add.u32 %r0, %p1, %r2;"), HasSubstr("declared .pred"));
  EXPECT_THAT(refusal("selp.b32 %r0, %r1, %r2, %r3;"), HasSubstr(".pred is expected"));
  EXPECT_THAT(refusal("cvt.u32.u64 %h0, %rd1;"), HasSubstr("narrower"));
  EXPECT_THAT(refusal("add.u32 %r0, %r1;"), HasSubstr("2 operands where 3"));
  EXPECT_THAT(refusal("mov.b64 %rd0, {%r1, %r2, %r3};"), HasSubstr("elements"));
}

TEST(AluQuery, LeavesOtherInstructionsAlone) {
  for (const char* text :
       {"mov.u32 %r0, %tid.x;", "mov.u64 %rd0, %clock64;", "ld.global.u32 %r0, [%rd1];",
        "cvta.to.global.u64 %rd0, %rd1;", "bar.sync 0;", "shfl.sync.idx.b32 %r0, %r1, %r2, 31, -1;",
        "atom.global.add.u32 %r0, [%rd1], %r2;", "ret;"}) {
    EXPECT_EQ(refusal(text), "not an ALU instruction") << text;
  }
}

TEST(AluQuery, ReadsConstantsAsTheirTypes) {
  ptx::Operand integer{.kind = ptx::Operand::Kind::kImmediate, .bits = ~uint64_t{4}};
  EXPECT_EQ(immediate_bits(integer, ptx::Type::kS16), 0xfffbu);
  EXPECT_EQ(immediate_bits(integer, ptx::Type::kB64), ~uint64_t{4});
  EXPECT_EQ(immediate_bits(integer, ptx::Type::kPred), 1u);
  ptx::Operand literal{.kind = ptx::Operand::Kind::kImmediate, .is_float = true, .is_double = true};
  literal.bits = std::bit_cast<uint64_t>(0.1);
  EXPECT_EQ(immediate_bits(literal, ptx::Type::kF32), std::bit_cast<uint32_t>(0.1f));
  EXPECT_EQ(immediate_bits(literal, ptx::Type::kF64), literal.bits);
  ptx::Operand single{.kind = ptx::Operand::Kind::kImmediate, .is_float = true};
  single.bits = std::bit_cast<uint32_t>(0.1f);
  EXPECT_EQ(immediate_bits(single, ptx::Type::kF64), std::bit_cast<uint64_t>(double{0.1f}));
}

TEST(AluQuery, ListsItsOpcodes) {
  std::vector<std::string_view> opcodes = alu_opcodes();
  EXPECT_TRUE(std::is_sorted(opcodes.begin(), opcodes.end()));
  for (const char* opcode : {"add", "cvt", "setp", "prmt", "tanh", "madc"}) {
    EXPECT_THAT(opcodes, Contains(opcode));
  }
}

TEST(AluQuery, KnowsTheArithmeticOfCompiledKernels) {
  std::vector<std::string_view> opcodes = alu_opcodes();
  int known = 0;
  std::filesystem::path folder = COMMBENCH_SOURCE_DIR "/simulator/ptx/testdata";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".ptx") continue;
    Result<ptx::Module> module = ptx::parse(value_or_throw(read_file(entry.path().string())));
    if (!module) continue;  // a file for the parser's own refusals
    for (const ptx::Function& function : module->functions) {
      for (const ptx::Instruction& instruction : function.body) {
        auto answer = find_alu(instruction, function);
        if (!answer) continue;
        EXPECT_TRUE(answer->has_value()) << entry.path() << ": " << answer->error().message();
        ++known;
      }
    }
  }
  EXPECT_GT(known, 100);
}

bool stays_affine(const std::string& text, uint64_t base, int32_t stride) {
  AluRig rig(text);
  for (const AluRig::Operand& operand : rig.operands()) {
    if (operand.reg >= 0 && !operand.place.is_destination)
      rig.set_affine(operand.reg, base, stride);
  }
  rig.run();
  return !rig.meta(rig.operands()[0].reg).is_vector;
}

// The speed of the simulator is that address arithmetic does not become vectors.
TEST(AluAffine, KeepsAddressArithmeticCheap) {
  for (const char* text : {"add.s32 %r0, %r1, 7;",
                           "sub.s32 %r0, 100, %r1;",
                           "shl.b32 %r0, %r1, 4;",
                           "mul.lo.s32 %r0, %r1, -12;",
                           "mad.lo.s32 %r0, %r1, 8, %r2;",
                           "mul.wide.u32 %rd0, %r1, 16;",
                           "mul.wide.s32 %rd0, %r1, 4;",
                           "cvt.u64.u32 %rd0, %r1;",
                           "cvt.s64.s32 %rd0, %r1;",
                           "add.s64 %rd0, %rd1, %rd2;",
                           "cvt.u32.u64 %r0, %rd1;",
                           "and.b32 %r0, %r1, 31;",
                           "and.b32 %r0, %r1, -32;",
                           "shr.u32 %r0, %r1, 5;",
                           "shr.s32 %r0, %r1, 5;",
                           "div.u32 %r0, %r1, 32;",
                           "rem.u32 %r0, %r1, 32;",
                           "or.b32 %r0, %r1, 4096;",
                           "xor.b32 %r0, %r1, 8192;",
                           "not.b32 %r0, %r1;",
                           "min.u32 %r0, %r1, 1000000;",
                           "max.s32 %r0, %r1, 0;",
                           "mov.b32 %r0, %r1;",
                           "cvt.u16.u32 %h0, %r1;",
                           "neg.s32 %r0, %r1;",
                           "bfe.u32 %r0, %r1, 0, 5;",
                           "mov.b64 %rd0, {%r1, 3};",
                           "abs.s32 %r0, %r1;"}) {
    EXPECT_TRUE(stays_affine(text, 96, 1)) << text;
  }
  EXPECT_TRUE(stays_affine("shr.u32 %r0, %r1, 2;", 128, 4));
  EXPECT_TRUE(stays_affine("div.s32 %r0, %r1, 6;", 128, 12));
  EXPECT_TRUE(stays_affine("shl.b64 %rd0, %rd1, 3;", 0x7f0000000000, 16));
  EXPECT_TRUE(stays_affine("selp.b32 %r0, %r1, %r1, %p1;", 5, 3));
}

// 2^31 does not fit a stride, though it is one of a 64-bit number.
TEST(AluAffine, GivesUpOnStridesThatDoNotFit) {
  EXPECT_FALSE(stays_affine("shl.b64 %rd0, %rd1, 4;", 0, 1 << 28));
  EXPECT_FALSE(stays_affine("neg.s64 %rd0, %rd1;", 0, INT32_MIN));
  EXPECT_FALSE(stays_affine("add.s64 %rd0, %rd1, %rd1;", 0, 1 << 30));
  EXPECT_TRUE(stays_affine("add.s32 %r0, %r1, %r1;", 0, 1 << 30));
}

}  // namespace
}  // namespace cb::sim
