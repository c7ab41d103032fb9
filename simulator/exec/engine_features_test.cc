// What kernels use beyond arithmetic: waiting per lane, grid barriers, tables of branches and
// functions, printing, assertions, multicast.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/exec/engine_rig.h"

namespace cb::sim {
namespace {

using ::testing::HasSubstr;

class EngineFeatures : public ::testing::TestWithParam<EngineRig::Mode> {};
INSTANTIATE_TEST_SUITE_P(Modes, EngineFeatures, ::testing::ValuesIn(EngineRig::all_modes()));

constexpr char kRegisters[] =
    ".reg .pred %p<10>; .reg .b32 %r<40>; .reg .b64 %rd<20>; .reg .f32 %f<10>;\n"
    "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;\n"
    "mov.u32 %r3, %ntid.x; mad.lo.u32 %r4, %r2, %r3, %r1; mul.wide.u32 %rd2, %r4, 4;\n"
    "add.s64 %rd0, %rd1, %rd2;\n";

std::string kernel(const std::string& body) {
  return ".visible .entry k(.param .u64 out, .param .u64 a, .param .u64 b)\n{\n" +
         std::string(kRegisters) + body + "\nret;\n}\n";
}

TEST_P(EngineFeatures, LanesWaitForFlagsOfTheirOwn) {
  // Lane i of rank 1 waits for flag i; rank 0 sets them one after the other, the last one first.
  EngineRig rig(R"(
.visible .entry set(.param .u64 flags)
{
  .reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [flags];
  mov.u32 %r1, 31;
next:
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.release.sys.global.u32 [%rd3], 7;
  add.u32 %r1, %r1, -1;
  setp.ge.s32 %p1, %r1, 0;
  @%p1 bra next;
  ret;
}
)" + kernel(R"(
  ld.param.u64 %rd5, [a];
  add.s64 %rd6, %rd5, %rd2;
wait:
  ld.acquire.sys.global.u32 %r5, [%rd6];
  setp.eq.u32 %p1, %r5, 0;
  @%p1 bra wait;
  bar.sync 0;
  st.global.u32 [%rd0], %r5;)"),
                GetParam());
  auto* out = rig.buffer<uint32_t>(1, 32);
  auto* flags = rig.buffer<uint32_t>(1, 32);
  rig.launch("k", 1, {.threads = 32}, {address_of(out), address_of(flags), 0});
  rig.launch("set", 0, {.threads = 1}, {address_of(flags)});
  rig.run();
  EXPECT_EQ(rig.running(), 0);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(out[i], 7u);
}

TEST_P(EngineFeatures, AGridBarrierOrdersBlocks) {
  // The barrier of cooperative groups: the workspace is where %envreg1 and %envreg2 say.
  EngineRig rig(kernel(R"(
  mov.b32 %r5, %envreg1; mov.b32 %r6, %envreg2;
  cvt.u64.u32 %rd5, %r5; shl.b64 %rd5, %rd5, 32; cvt.u64.u32 %rd6, %r6; or.b64 %rd5, %rd5, %rd6;
  st.global.u32 [%rd0], %r4;
  bar.sync 0;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra joined;
  fence.acq_rel.gpu;
  atom.add.release.gpu.global.u32 %r7, [%rd5+4], 1;
wait:
  ld.acquire.gpu.global.u32 %r8, [%rd5+4];
  setp.lt.u32 %p2, %r8, 20;
  @%p2 bra wait;
joined:
  bar.sync 0;
  mov.u32 %r9, %nctaid.x;
  mul.lo.u32 %r10, %r9, %r3;
  sub.u32 %r11, %r10, %r4;
  add.u32 %r11, %r11, -1;
  mul.wide.u32 %rd7, %r11, 4;
  add.s64 %rd8, %rd1, %rd7;
  ld.volatile.global.u32 %r12, [%rd8];
  ld.param.u64 %rd9, [a];
  add.s64 %rd9, %rd9, %rd2;
  st.global.u32 [%rd9], %r12;)"),
                GetParam());
  auto* out = rig.buffer<uint32_t>(0, 20 * 64);
  auto* seen = rig.buffer<uint32_t>(0, 20 * 64);
  rig.launch("k", 0, {.blocks = 20, .threads = 64, .cooperative = true},
             {address_of(out), address_of(seen), 0});
  rig.run();
  EXPECT_EQ(rig.running(), 0);
  for (uint32_t i = 0; i < 20 * 64; ++i) ASSERT_EQ(seen[i], 20 * 64 - 1 - i);
}

TEST_P(EngineFeatures, TablesOfBranches) {
  EngineRig rig(kernel(R"(
  and.b32 %r5, %r1, 3;
  ts: .branchtargets zero, one, two, one;
  brx.idx %r5, ts;
zero: mov.u32 %r6, 100; bra join;
one:  mov.u32 %r6, 200; bra join;
two:  mov.u32 %r6, 300;
join:
  add.u32 %r6, %r6, %r1;
  st.global.u32 [%rd0], %r6;)"),
                GetParam());
  auto* out = rig.buffer<uint32_t>(0, 32);
  rig.launch("k", 0, {.threads = 32}, {address_of(out), 0, 0});
  rig.run();
  constexpr uint32_t kValues[] = {100, 200, 300, 200};
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(out[i], kValues[i % 4] + i);
}

TEST_P(EngineFeatures, FunctionsThroughPointers) {
  EngineRig rig(R"(
.func (.param .b32 r) twice(.param .b32 x)
{ .reg .b32 %r<3>; ld.param.u32 %r1, [x]; shl.b32 %r1, %r1, 1; st.param.b32 [r], %r1; ret; }
.func (.param .b32 r) square(.param .b32 x)
{ .reg .b32 %r<3>; ld.param.u32 %r1, [x]; mul.lo.u32 %r1, %r1, %r1; st.param.b32 [r], %r1; ret; }
)" + kernel(R"(
  mov.u64 %rd5, twice;
  mov.u64 %rd6, square;
  and.b32 %r5, %r1, 1;
  setp.eq.u32 %p1, %r5, 0;
  selp.b64 %rd7, %rd5, %rd6, %p1;
  { .param .b32 x; .param .b32 r;
    st.param.b32 [x], %r1;
    proto: .callprototype (.param .b32 _) _ (.param .b32 _);
    call (r), %rd7, (x), proto;
    ld.param.b32 %r6, [r]; }
  st.global.u32 [%rd0], %r6;)"),
                GetParam());
  auto* out = rig.buffer<uint32_t>(0, 32);
  rig.launch("k", 0, {.threads = 32}, {address_of(out), 0, 0});
  rig.run();
  EXPECT_EQ(rig.running(), 0);
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(out[i], i % 2 == 0 ? 2 * i : i * i);
}

TEST_P(EngineFeatures, ACallOfNoFunctionIsAFinding) {
  EngineRig rig(kernel(R"(
  mov.u64 %rd7, 4096;
  { proto: .callprototype _ ();
    call %rd7, (), proto; })"),
                GetParam());
  rig.launch("k", 0, {.threads = 1}, {0, 0, 0});
  rig.run();
  ASSERT_EQ(rig.engine().findings().size(), 1u);
  EXPECT_EQ(rig.engine().findings()[0].kind, Finding::Kind::kIllegalInstruction);
}

TEST_P(EngineFeatures, KernelsPrint) {
  EngineRig rig(R"(
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.global .align 1 .b8 text[] = {108, 97, 110, 101, 32, 37, 100, 58, 32, 37, 46, 49, 102, 10, 0};
)" + kernel(R"(
  .local .align 8 .b8 depot[16];
  .reg .b64 %SP; .reg .f64 %fd<3>;
  mov.u64 %SP, depot;
  cvta.local.u64 %rd5, %SP;
  st.local.u32 [%SP], %r1;
  cvt.rn.f64.u32 %fd1, %r1;
  st.local.f64 [%SP+8], %fd1;
  mov.u64 %rd6, text;
  cvta.global.u64 %rd7, %rd6;
  { .param .b64 f; .param .b64 a; .param .b32 r;
    st.param.b64 [f], %rd7; st.param.b64 [a], %rd5;
    call.uni (r), vprintf, (f, a); })"),
                GetParam());
  rig.launch("k", 0, {.threads = 2}, {0, 0, 0});
  rig.run();
  EXPECT_EQ(rig.engine().take_output(0), "lane 0: 0.0\nlane 1: 1.0\n");
}

TEST_P(EngineFeatures, MulticastAddsOnAllDevices) {
  EngineRig rig(kernel(R"(
  ld.param.u64 %rd5, [a];
  multimem.red.release.sys.global.add.u32 [%rd5], 5;
  multimem.ld_reduce.acquire.sys.global.add.u32 %r5, [%rd5];
  st.global.u32 [%rd0], %r5;)"),
                GetParam());
  std::vector<const Allocation*> members;
  for (int rank = 0; rank < 4; ++rank) {
    members.push_back(rig.memory().find(rig.allocate(rank, 64)));
    *reinterpret_cast<uint32_t*>(members.back()->base) = static_cast<uint32_t>(rank);
  }
  const Allocation* all = rig.memory().allocate_multicast(members);
  auto* out = rig.buffer<uint32_t>(0, 1);
  rig.launch("k", 0, {.threads = 1}, {address_of(out), all->base, 0});
  rig.run();
  EXPECT_EQ(rig.running(), 0);
  EXPECT_EQ(out[0], 0u + 1 + 2 + 3 + 4 * 5);
}

TEST_P(EngineFeatures, DivergentLanesMeetAtAWarpBarrier) {
  EngineRig rig(kernel(R"(
  setp.lt.u32 %p1, %r1, 16;
  @%p1 bra low;
  mul.lo.u32 %r5, %r1, 3;
  bar.warp.sync -1;
  bra join;
low:
  add.u32 %r5, %r1, 1000;
  bar.warp.sync -1;
join:
  shfl.sync.idx.b32 %r6, %r5, 20, 31, -1;
  add.u32 %r6, %r6, %r1;
  st.global.u32 [%rd0], %r6;)"),
                GetParam());
  auto* out = rig.buffer<uint32_t>(0, 32);
  rig.launch("k", 0, {.threads = 32}, {address_of(out), 0, 0});
  rig.run();
  EXPECT_EQ(rig.running(), 0);
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(out[i], 60 + i);
}

TEST_P(EngineFeatures, ABarrierThatSomeThreadsNeverReachIsReported) {
  EngineRig rig(kernel(R"(
  ld.param.u64 %rd5, [a];
  setp.lt.u32 %p1, %r1, 64;
  @%p1 bra skip;
wait:
  ld.volatile.global.u32 %r5, [%rd5];
  setp.eq.u32 %p2, %r5, 0;
  @%p2 bra wait;
skip:
  bar.sync 0;)"),
                GetParam());
  auto* flag = rig.buffer<uint32_t>(0, 1);
  rig.launch("k", 0, {.threads = 96}, {0, address_of(flag), 0});
  rig.run();
  EXPECT_EQ(rig.running(), 1);
  auto waiters = rig.engine().waiters(10);
  ASSERT_EQ(waiters.size(), 3u);
  EXPECT_THAT(waiters[0].waits_for, HasSubstr("it waits while that is == 0"));
  EXPECT_EQ(waiters[2].waits_for, "barrier 0: 64 of 96 threads have arrived");
}

TEST_P(EngineFeatures, TrapsAreFindings) {
  EngineRig rig(kernel("setp.eq.u32 %p1, %r1, 5; @%p1 trap;"), GetParam());
  rig.launch("k", 0, {.threads = 32}, {0, 0, 0});
  rig.run();
  ASSERT_EQ(rig.engine().findings().size(), 1u);
  EXPECT_EQ(rig.engine().findings()[0].kind, Finding::Kind::kTrap);
  EXPECT_EQ(rig.engine().findings()[0].place.thread[0], 5u);
}

TEST_P(EngineFeatures, MisalignedAndFreedAddresses) {
  EngineRig rig(
      kernel("ld.param.u64 %rd5, [a]; ld.global.u32 %r5, [%rd5]; st.global.u32 [%rd0], %r5;"),
      GetParam());
  auto* out = rig.buffer<uint32_t>(0, 1);
  auto* data = rig.buffer<uint32_t>(0, 4);
  rig.launch("k", 0, {.threads = 1}, {address_of(out), address_of(data) + 2, 0});
  rig.run();
  ASSERT_EQ(rig.engine().findings().size(), 1u);
  EXPECT_EQ(rig.engine().findings()[0].kind, Finding::Kind::kMisaligned);
  rig.memory().free(0, address_of(data), Allocation::Kind::kSymmetric);
  rig.launch("k", 0, {.threads = 1}, {address_of(out), address_of(data), 0});
  rig.run();
  ASSERT_EQ(rig.engine().findings().size(), 2u);
  EXPECT_EQ(rig.engine().findings()[1].kind, Finding::Kind::kUseAfterFree);
}

TEST_P(EngineFeatures, AWaitWithAClockEnds) {
  EngineRig rig(kernel(R"(
  ld.param.u64 %rd5, [a];
  mov.u64 %rd6, %globaltimer;
wait:
  ld.volatile.global.u32 %r5, [%rd5];
  mov.u64 %rd7, %globaltimer;
  sub.u64 %rd8, %rd7, %rd6;
  setp.lt.u64 %p1, %rd8, 50000;
  setp.eq.u32 %p2, %r5, 0;
  and.pred %p3, %p1, %p2;
  @%p3 bra wait;
  cvt.u32.u64 %r6, %rd8;
  st.global.u32 [%rd0], %r6;)"),
                GetParam());
  auto* out = rig.buffer<uint32_t>(0, 1);
  auto* flag = rig.buffer<uint32_t>(0, 1);
  rig.launch("k", 0, {.threads = 1}, {address_of(out), address_of(flag), 0});
  rig.run();
  EXPECT_EQ(rig.running(), 0);
  EXPECT_GE(out[0], 50000u);
  EXPECT_LT(out[0], 120000u);
}

}  // namespace
}  // namespace cb::sim
