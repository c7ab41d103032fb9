// alloca and what gives memory back, calls that recurse, calls by .calltargets, and special
// registers that few kernels read.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/exec/engine_rig.h"

namespace cb::sim {
namespace {

using ::testing::HasSubstr;

class EngineStack : public ::testing::TestWithParam<EngineRig::Mode> {};
INSTANTIATE_TEST_SUITE_P(Modes, EngineStack, ::testing::ValuesIn(EngineRig::all_modes()));

/// A kernel in which %rd0 is the address of the thread's word of `out`, %r1 its index.
std::string kernel(const std::string& body) {
  return ".visible .entry k(.param .u64 out)\n{\n"
         ".reg .pred %p<10>; .reg .b16 %h<4>; .reg .b32 %r<40>; .reg .b64 %rd<20>;\n"
         "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4;\n"
         "add.s64 %rd0, %rd1, %rd2;\n" +
         body + "\nret;\n}\n";
}

struct Outcome {
  std::vector<uint32_t> out;
  std::vector<Finding> findings;
};

Outcome run(const std::string& ptx, const EngineRig::Mode& mode,
            const EngineRig::Shape& shape = {}) {
  EngineRig rig(ptx, mode);
  auto* out = rig.buffer<uint32_t>(0, 64);
  rig.launch("k", 0, shape, {address_of(out)});
  rig.run();
  EXPECT_EQ(rig.running(), 0);
  return {{out, out + 64}, rig.engine().findings()};
}

TEST_P(EngineStack, AllocaGivesEachLaneMemoryOfTheSizeThatItWants) {
  // Lane i takes 16 * (i + 1) bytes, fills them with words, and sums these up.
  Outcome outcome = run(kernel(R"(
  add.u32 %r2, %r1, 1; shl.b32 %r2, %r2, 4; cvt.u64.u32 %rd3, %r2;
  alloca.u64 %rd4, %rd3;
  alloca.u64 %rd9, 8, 64;
  and.b64 %rd10, %rd9, 63; cvt.u32.u64 %r9, %rd10;
  st.local.u32 [%rd9], %r1;
  cvta.local.u64 %rd5, %rd4;
  mov.u32 %r3, 0; mov.u32 %r4, 0;
fill:
  cvt.u64.u32 %rd6, %r3; add.u64 %rd7, %rd5, %rd6; add.u64 %rd8, %rd4, %rd6;
  st.u32 [%rd7], %r1;
  ld.local.u32 %r5, [%rd8];
  add.u32 %r4, %r4, %r5;
  add.u32 %r3, %r3, 4;
  setp.lt.u32 %p1, %r3, %r2;
  @%p1 bra fill;
  ld.local.u32 %r6, [%rd9];
  add.u32 %r4, %r4, %r6; add.u32 %r4, %r4, %r9;
  st.global.u32 [%rd0], %r4;)"),
                        GetParam());
  EXPECT_TRUE(outcome.findings.empty());
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(outcome.out[i], 4 * (i + 1) * i + i);
}

TEST_P(EngineStack, StackrestoreAndReturnsGiveBack) {
  // 2000 allocations of 1000 bytes each would not fit.
  Outcome outcome = run(R"(
.func take()
{
  .reg .b64 %d<4>;
  mov.u64 %d1, 1000;
  alloca.u64 %d2, %d1;
  st.local.u64 [%d2+992], %d1;
  ret;
}
)" + kernel(R"(
  mov.u64 %rd3, 1000; mov.u32 %r2, 0;
again:
  call take;
  stacksave.u64 %rd4;
  alloca.u64 %rd5, %rd3;
  st.local.u64 [%rd5], %rd3;
  stackrestore.u64 %rd4;
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p1, %r2, 1000;
  @%p1 bra again;
  st.global.u32 [%rd0], %r2;)"),
                        GetParam());
  EXPECT_TRUE(outcome.findings.empty());
  EXPECT_EQ(outcome.out[31], 1000u);
}

TEST_P(EngineStack, TakingTooMuchIsAnOverflow) {
  for (const char* size : {"1000000", "0xffffffffffffffff", "0x100000000"}) {
    Outcome outcome = run(kernel(std::string("mov.u64 %rd3, ") + size + "; alloca.u64 %rd4, %rd3;"),
                          GetParam(), {.threads = 1});
    ASSERT_EQ(outcome.findings.size(), 1u) << size;
    EXPECT_EQ(outcome.findings[0].kind, Finding::Kind::kStackOverflow);
    EXPECT_THAT(outcome.findings[0].detail, HasSubstr("alloca of"));
  }
}

TEST_P(EngineStack, CallsAndAllocaShareTheStack) {
  // Each level of an endless recursion takes memory from both ends.
  Outcome outcome = run(R"(
.func down()
{
  .reg .b64 %d<4>;
  .local .align 8 .b8 room[64];
  mov.u64 %d1, 64;
  alloca.u64 %d2, %d1;
  st.local.u64 [%d2], %d1;
  st.local.u64 [room+56], %d1;
  call down;
  ret;
}
)" + kernel("call down;"),
                        GetParam(), {.threads = 1});
  ASSERT_EQ(outcome.findings.size(), 1u);
  EXPECT_EQ(outcome.findings[0].kind, Finding::Kind::kStackOverflow);
}

TEST_P(EngineStack, RestoringWhatWasNeverSavedIsIllegal) {
  for (const char* value : {"0", "0x7fffffffffffffff"}) {
    Outcome outcome = run(kernel(std::string("mov.u64 %rd3, 64; alloca.u64 %rd4, %rd3; mov.u64 "
                                             "%rd5, ") +
                                 value + "; stackrestore.u64 %rd5;"),
                          GetParam(), {.threads = 1});
    ASSERT_EQ(outcome.findings.size(), 1u) << value;
    EXPECT_EQ(outcome.findings[0].kind, Finding::Kind::kIllegalInstruction);
  }
}

TEST_P(EngineStack, LanesRecurseToDepthsOfTheirOwn) {
  Outcome outcome = run(R"(
.func (.param .b32 r) fibonacci(.param .b32 n)
{
  .reg .pred %p<2>; .reg .b32 %r<9>;
  ld.param.b32 %r1, [n];
  setp.lt.u32 %p1, %r1, 2;
  @%p1 bra small;
  { .param .b32 a; .param .b32 b; .param .b32 c; .param .b32 d;
    add.u32 %r2, %r1, -1; st.param.b32 [a], %r2; call (b), fibonacci, (a); ld.param.b32 %r3, [b];
    add.u32 %r4, %r1, -2; st.param.b32 [c], %r4; call (d), fibonacci, (c); ld.param.b32 %r5, [d]; }
  add.u32 %r1, %r3, %r5;
small:
  st.param.b32 [r], %r1;
  ret;
}
)" + kernel(R"(
  { .param .b32 a; .param .b32 b;
    rem.u32 %r2, %r1, 11; st.param.b32 [a], %r2; call (b), fibonacci, (a); ld.param.b32 %r3, [b]; }
  st.global.u32 [%rd0], %r3;)"),
                        GetParam());
  EXPECT_TRUE(outcome.findings.empty());
  constexpr uint32_t kNumbers[] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55};
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(outcome.out[i], kNumbers[i % 11]);
}

TEST_P(EngineStack, CallsByTargets) {
  Outcome outcome = run(R"(
.func (.param .b32 r) twice(.param .b32 n)
{ .reg .b32 %r<3>; ld.param.b32 %r1, [n]; add.u32 %r1, %r1, %r1; st.param.b32 [r], %r1; ret; }
.func (.param .b32 r) square(.param .b32 n)
{ .reg .b32 %r<3>; ld.param.b32 %r1, [n]; mul.lo.u32 %r1, %r1, %r1; st.param.b32 [r], %r1; ret; }
)" + kernel(R"(
  mov.u64 %rd3, twice; mov.u64 %rd4, square;
  and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0; selp.b64 %rd5, %rd3, %rd4, %p1;
  { .param .b32 a; .param .b32 b; T: .calltargets twice, square;
    st.param.b32 [a], %r1; call (b), %rd5, (a), T; ld.param.b32 %r3, [b]; }
  st.global.u32 [%rd0], %r3;)"),
                        GetParam());
  EXPECT_TRUE(outcome.findings.empty());
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(outcome.out[i], i % 2 == 0 ? 2 * i : i * i);
}

TEST_P(EngineStack, SpecialRegistersMoveAsVectorsAndHalves) {
  Outcome outcome = run(kernel(R"(
  mov.v4.u32 {%r2, %r3, _, %r4}, %ntid;
  mov.v4.u32 {%r5, _, _, _}, %tid;
  mov.u16 %h1, %tid.x;
  cvt.u32.u16 %r6, %h1;
  mad.lo.u32 %r7, %r2, 1000, %r3; add.u32 %r7, %r7, %r4;
  mad.lo.u32 %r7, %r5, 1000000, %r7; add.u32 %r7, %r7, %r6;
  st.global.u32 [%rd0], %r7;)"),
                        GetParam());
  EXPECT_TRUE(outcome.findings.empty());
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(outcome.out[i], i * 1000000 + 32 * 1000 + 1 + i);
}

TEST_P(EngineStack, ReservedSharedMemoryLiesBesideTheUsersAndIsZero) {
  Outcome outcome = run(".extern .shared .align 16 .b8 dynamic[];\n" + kernel(R"(
  .shared .align 4 .b8 words[256];
  mov.u32 %r2, %reserved_smem_offset_begin; mov.u32 %r3, %reserved_smem_offset_end;
  mov.u32 %r4, %reserved_smem_offset_cap;   mov.u32 %r5, %reserved_smem_offset_1;
  mov.u32 %r6, %total_smem_size;            mov.u32 %r7, %aggr_smem_size;
  st.shared.u32 [words+252], %r1; st.shared.u32 [dynamic+96], %r1;
  sub.u32 %r8, %r3, %r2; sub.u32 %r8, %r8, %r4;           // 0
  ld.shared.u32 %r9, [%r5]; add.u32 %r8, %r8, %r9;        // 0
  sub.u32 %r10, %r7, %r6; sub.u32 %r10, %r10, %r4; add.u32 %r8, %r8, %r10;  // 0
  setp.ge.u32 %p1, %r2, %r6; selp.b32 %r11, 1, 2, %p1; add.u32 %r8, %r8, %r11;
  add.u32 %r12, %r6, %r8;
  st.global.u32 [%rd0], %r12;)"),
                        GetParam(), {.threads = 1, .dynamic_shared_bytes = 100});
  EXPECT_TRUE(outcome.findings.empty());
  EXPECT_EQ(outcome.out[0], 256u + 100 + 1);
}

TEST_P(EngineStack, CallsByAlias) {
  Outcome outcome = run(R"(
.visible .func (.param .b32 r) other(.param .b32 n);
.func (.param .b32 r) twice(.param .b32 n)
{ .reg .b32 %r<3>; ld.param.b32 %r1, [n]; add.u32 %r1, %r1, %r1; st.param.b32 [r], %r1; ret; }
.alias other, twice;
)" + kernel(R"(
  { .param .b32 a; .param .b32 b;
    st.param.b32 [a], %r1; call (b), other, (a); ld.param.b32 %r3, [b]; }
  mov.u64 %rd3, other;
  { .param .b32 a; .param .b32 b; P: .callprototype (.param .b32 _) _ (.param .b32 _);
    st.param.b32 [a], %r3; call (b), %rd3, (a), P; ld.param.b32 %r3, [b]; }
  st.global.u32 [%rd0], %r3;)"),
                        GetParam());
  EXPECT_TRUE(outcome.findings.empty());
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(outcome.out[i], 4 * i);
}

TEST_P(EngineStack, WarpsTakeRegistersThatOthersGiveUp) {
  // Warps 1 and 2 want 40 more each, warp 0 gives up 40, warp 3 in the end 48.
  EngineRig rig(kernel(R"(
  shr.u32 %r2, %r1, 5;
  mov.u32 %r9, 0;
  setp.eq.u32 %p1, %r2, 1; @%p1 bra more;
  setp.eq.u32 %p1, %r2, 2; @%p1 bra more;
  setp.eq.u32 %p1, %r2, 0; @%p1 bra less;
  nanosleep.u32 5000;
  mov.u64 %rd5, %globaltimer; cvt.u32.u64 %r9, %rd5;
  setmaxnreg.dec.sync.aligned.u32 24;
  bra done;
less:
  setmaxnreg.dec.sync.aligned.u32 32;
  bra done;
more:
  setmaxnreg.inc.sync.aligned.u32 112;
  mov.u64 %rd5, %globaltimer; cvt.u32.u64 %r9, %rd5;
done:
  st.global.u32 [%rd0], %r9;)"),
                GetParam());
  auto* out = rig.buffer<uint32_t>(0, 128);
  rig.launch("k", 0, {.threads = 128, .registers = 72}, {address_of(out)});
  rig.run();
  EXPECT_EQ(rig.running(), 0);
  EXPECT_TRUE(rig.engine().findings().empty());
  // One of the two could go on at once, the other only after warp 3.
  if (GetParam().timed) {
    EXPECT_LT(std::min(out[32], out[64]), out[96]);
    EXPECT_GE(std::max(out[32], out[64]), out[96]);
  }
}

TEST_P(EngineStack, RegistersThatNobodyGivesUpAreADeadlock) {
  EngineRig rig(kernel("setmaxnreg.inc.sync.aligned.u32 240;"), GetParam());
  rig.launch("k", 0, {.threads = 32, .registers = 72}, {0});
  rig.run();
  EXPECT_EQ(rig.running(), 1);
  ASSERT_EQ(rig.engine().waiters(10).size(), 1u);
  EXPECT_THAT(rig.engine().waiters(10)[0].waits_for,
              HasSubstr("its warp has 72 a thread, and 0 are spare"));
}

TEST_P(EngineStack, RegistersInTheWrongDirectionAreIllegal) {
  for (const char* text :
       {"setmaxnreg.inc.sync.aligned.u32 64;", "setmaxnreg.dec.sync.aligned.u32 80;"}) {
    EngineRig rig(kernel(text), GetParam());
    rig.launch("k", 0, {.threads = 32, .registers = 72}, {0});
    rig.run();
    ASSERT_EQ(rig.engine().findings().size(), 1u);
    EXPECT_EQ(rig.engine().findings()[0].kind, Finding::Kind::kIllegalInstruction);
  }
}

TEST_P(EngineStack, CountersThatNobodyProgrammedAreZero) {
  Outcome outcome = run(kernel(R"(
  mov.u32 %r2, %pm3; mov.u64 %rd3, %pm7_64; mov.u64 %rd4, %current_graph_exec;
  cvt.u32.u64 %r3, %rd3; cvt.u32.u64 %r4, %rd4;
  pmevent 1; pmevent.mask 0xff; brkpt;
  add.u32 %r2, %r2, %r3; add.u32 %r2, %r2, %r4; add.u32 %r2, %r2, 5;
  st.global.u32 [%rd0], %r2;)"),
                        GetParam());
  EXPECT_TRUE(outcome.findings.empty());
  EXPECT_EQ(outcome.out[7], 5u);
}

}  // namespace
}  // namespace cb::sim
