// Kernels as a whole: what they compute must not depend on the mode or on any pass of the decoder.

#include "simulator/exec/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/exec/engine_rig.h"

namespace cb::sim {
namespace {

using ::testing::HasSubstr;

class EngineTest : public ::testing::TestWithParam<EngineRig::Mode> {};

std::string mode_name(const ::testing::TestParamInfo<EngineRig::Mode>& info) {
  std::string name = info.param.timed ? "timed" : "functional";
  if (!info.param.decode.schedule_loads) name += "_unscheduled";
  if (!info.param.decode.share_slots) name += "_unshared";
  return name;
}

INSTANTIATE_TEST_SUITE_P(Modes, EngineTest, ::testing::ValuesIn(EngineRig::all_modes()), mode_name);

/// %rd0 = address of out[global thread index]; parameters: out, and up to two more.
constexpr char kPrologue[] = R"(
  .reg .pred %p<10>; .reg .b32 %r<40>; .reg .b64 %rd<20>; .reg .f32 %f<10>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;
  mad.lo.s32 %r4, %r2, %r3, %r1;
  mul.wide.u32 %rd2, %r4, 4;
  add.s64 %rd0, %rd1, %rd2;
)";

std::string kernel(const std::string& body, const std::string& before = "") {
  return before + ".visible .entry k(.param .u64 out, .param .u64 a, .param .u64 b)\n{\n" +
         kPrologue + body + "\n  ret;\n}\n";
}

TEST_P(EngineTest, EveryThreadWritesItsIndex) {
  EngineRig rig(kernel("st.global.u32 [%rd0], %r4;"), GetParam());
  auto* out = rig.buffer<uint32_t>(0, 1000);
  rig.launch("k", 0, {.blocks = 10, .threads = 100}, {address_of(out), 0, 0});
  rig.run();
  EXPECT_EQ(rig.running(), 0);
  for (uint32_t i = 0; i < 1000; ++i) EXPECT_EQ(out[i], i);
}

TEST_P(EngineTest, LanesLeaveALoopOneByOne) {
  // sum of 0 .. lane
  EngineRig rig(kernel(R"(
  mov.u32 %r5, 0; mov.u32 %r6, 0;
loop:
  add.s32 %r6, %r6, %r5;
  add.s32 %r5, %r5, 1;
  setp.le.u32 %p1, %r5, %r1;
  @%p1 bra loop;
  st.global.u32 [%rd0], %r6;)"),
                GetParam());
  auto* out = rig.buffer<uint32_t>(0, 64);
  rig.launch("k", 0, {.threads = 64}, {address_of(out), 0, 0});
  rig.run();
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], i * (i + 1) / 2);
}

TEST_P(EngineTest, BothSidesOfABranchKeepTheirRegisters) {
  EngineRig rig(kernel(R"(
  and.b32 %r5, %r1, 1;
  setp.eq.u32 %p1, %r5, 0;
  mul.lo.u32 %r7, %r1, 3;
  @%p1 bra even;
  add.u32 %r8, %r7, 100;
  mul.lo.u32 %r9, %r8, 2;
  bra join;
even:
  xor.b32 %r10, %r7, 7;
  add.u32 %r9, %r10, 5;
join:
  add.u32 %r9, %r9, %r1;
  st.global.u32 [%rd0], %r9;)"),
                GetParam());
  auto* out = rig.buffer<uint32_t>(0, 32);
  rig.launch("k", 0, {.threads = 32}, {address_of(out), 0, 0});
  rig.run();
  for (uint32_t i = 0; i < 32; ++i) {
    uint32_t expected = i % 2 == 0 ? ((i * 3) ^ 7) + 5 : (i * 3 + 100) * 2;
    EXPECT_EQ(out[i], expected + i) << i;
  }
}

TEST_P(EngineTest, SharedMemoryAndBarrier) {
  EngineRig rig(kernel(R"(
  shl.b32 %r5, %r1, 2;
  mov.u32 %r6, tile;
  add.u32 %r7, %r6, %r5;
  st.shared.u32 [%r7], %r1;
  bar.sync 0;
  sub.u32 %r8, %r3, 1;
  sub.u32 %r8, %r8, %r1;
  shl.b32 %r8, %r8, 2;
  add.u32 %r8, %r6, %r8;
  ld.shared.u32 %r9, [%r8];
  st.global.u32 [%rd0], %r9;)",
                       ".shared .align 4 .b8 tile[1024];\n"),
                GetParam());
  auto* out = rig.buffer<uint32_t>(0, 200);
  rig.launch("k", 0, {.threads = 200}, {address_of(out), 0, 0});
  rig.run();
  for (uint32_t i = 0; i < 200; ++i) EXPECT_EQ(out[i], 199 - i);
}

TEST_P(EngineTest, ALockHeldByOneLaneAtATime) {
  EngineRig rig(kernel(R"(
  ld.param.u64 %rd5, [a];
  ld.param.u64 %rd6, [b];
try:
  atom.acquire.gpu.global.cas.b32 %r5, [%rd5], 0, 1;
  setp.ne.u32 %p1, %r5, 0;
  @%p1 bra try;
  ld.relaxed.gpu.global.u32 %r6, [%rd6];
  add.u32 %r6, %r6, 1;
  st.relaxed.gpu.global.u32 [%rd6], %r6;
  st.release.gpu.global.u32 [%rd5], 0;)"),
                GetParam());
  auto* out = rig.buffer<uint32_t>(0, 256);
  auto* lock = rig.buffer<uint32_t>(0, 1);
  auto* count = rig.buffer<uint32_t>(0, 1);
  rig.launch("k", 0, {.blocks = 2, .threads = 48},
             {address_of(out), address_of(lock), address_of(count)});
  rig.run();
  EXPECT_EQ(rig.running(), 0);
  EXPECT_EQ(*count, 96u);
}

constexpr char kPingPong[] = R"(
.visible .entry pong(.param .u64 mine, .param .u64 theirs, .param .u64 first)
{
  .reg .pred %p<4>; .reg .b32 %r<10>; .reg .b64 %rd<10>;
  ld.param.u64 %rd1, [mine];
  ld.param.u64 %rd2, [theirs];
  ld.param.u64 %rd3, [first];
  cvt.u32.u64 %r1, %rd3;
  mov.u32 %r2, 1;
next:
  setp.eq.u32 %p1, %r1, 1;
  @!%p1 bra wait;
  st.release.sys.global.u32 [%rd2], %r2;
wait:
  ld.acquire.sys.global.u32 %r3, [%rd1];
  setp.lt.u32 %p2, %r3, %r2;
  @%p2 bra wait;
  @%p1 bra done;
  st.release.sys.global.u32 [%rd2], %r2;
done:
  add.u32 %r2, %r2, 1;
  setp.le.u32 %p3, %r2, 20;
  @%p3 bra next;
  ret;
}
)";

TEST_P(EngineTest, DevicesTakeTurns) {
  EngineRig rig(kPingPong, GetParam());
  auto* flag0 = rig.buffer<uint32_t>(0, 1);
  auto* flag1 = rig.buffer<uint32_t>(1, 1);
  rig.launch("pong", 0, {.threads = 1}, {address_of(flag0), address_of(flag1), 1});
  rig.launch("pong", 1, {.threads = 1}, {address_of(flag1), address_of(flag0), 0});
  rig.run();
  EXPECT_EQ(rig.running(), 0);
  EXPECT_EQ(*flag0, 20u);
  EXPECT_EQ(*flag1, 20u);
  if (GetParam().timed) {
    // A one-way trip with system-scope ordering takes between one and four microseconds.
    EXPECT_GT(rig.last_end(), 40 * Time{1'000'000});
    EXPECT_LT(rig.last_end(), 160 * Time{1'000'000});
  }
}

TEST_P(EngineTest, AWaitForAWriteThatNeverComesIsReported) {
  EngineRig rig(kPingPong, GetParam());
  auto* flag0 = rig.buffer<uint32_t>(0, 1);
  auto* flag1 = rig.buffer<uint32_t>(1, 1);
  rig.launch("pong", 1, {.threads = 1}, {address_of(flag1), address_of(flag0), 0});
  rig.run();
  EXPECT_EQ(rig.running(), 1);
  EXPECT_EQ(rig.engine().next_event(), kNever);
  auto waiters = rig.engine().waiters(10);
  ASSERT_EQ(waiters.size(), 1u);
  EXPECT_EQ(waiters[0].address, address_of(flag1));
  EXPECT_EQ(waiters[0].place.rank, 1);
  EXPECT_THAT(waiters[0].waits_for, HasSubstr("which holds 0; it waits while that is < 1"));
  // A write by the host lets it go on to the next round.
  *flag1 = 1;
  rig.engine().written(address_of(flag1), 4);
  rig.run();
  EXPECT_EQ(*flag0, 1u);
}

TEST_P(EngineTest, ACountedWaitEndsByItself) {
  EngineRig rig(kernel(R"(
  ld.param.u64 %rd5, [a];
  mov.u32 %r5, 0;
spin:
  ld.volatile.global.u32 %r6, [%rd5];
  add.u32 %r5, %r5, 1;
  setp.ne.u32 %p1, %r6, 0;
  @%p1 bra out;
  setp.lt.u32 %p2, %r5, 1000;
  @%p2 bra spin;
out:
  st.global.u32 [%rd0], %r5;)"),
                GetParam());
  auto* out = rig.buffer<uint32_t>(0, 32);
  auto* flag = rig.buffer<uint32_t>(0, 1);
  rig.launch("k", 0, {.threads = 1}, {address_of(out), address_of(flag), 0});
  rig.run();
  EXPECT_EQ(rig.running(), 0);
  EXPECT_EQ(out[0], 1000u);
}

TEST_P(EngineTest, WarpsShuffleAndVote) {
  EngineRig rig(kernel(R"(
  mov.u32 %r5, %r1;
  shfl.sync.bfly.b32 %r6, %r5, 16, 31, -1;  add.u32 %r5, %r5, %r6;
  shfl.sync.bfly.b32 %r6, %r5, 8, 31, -1;   add.u32 %r5, %r5, %r6;
  shfl.sync.bfly.b32 %r6, %r5, 4, 31, -1;   add.u32 %r5, %r5, %r6;
  shfl.sync.bfly.b32 %r6, %r5, 2, 31, -1;   add.u32 %r5, %r5, %r6;
  shfl.sync.bfly.b32 %r6, %r5, 1, 31, -1;   add.u32 %r5, %r5, %r6;
  setp.gt.u32 %p1, %r1, 15;
  vote.sync.ballot.b32 %r7, %p1, -1;
  popc.b32 %r7, %r7;
  add.u32 %r5, %r5, %r7;
  st.global.u32 [%rd0], %r5;)"),
                GetParam());
  auto* out = rig.buffer<uint32_t>(0, 32);
  rig.launch("k", 0, {.threads = 32}, {address_of(out), 0, 0});
  rig.run();
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(out[i], 496u + 16u);
}

TEST_P(EngineTest, FunctionsCallThemselves) {
  EngineRig rig(R"(
.func (.param .b32 result) sum(.param .b32 n)
{
  .reg .pred %p<2>; .reg .b32 %r<8>;
  ld.param.u32 %r1, [n];
  setp.eq.u32 %p1, %r1, 0;
  mov.u32 %r2, 0;
  @%p1 bra done;
  add.u32 %r3, %r1, -1;
  { .param .b32 arg; .param .b32 back;
    st.param.b32 [arg], %r3;
    call.uni (back), sum, (arg);
    ld.param.b32 %r4, [back]; }
  add.u32 %r2, %r4, %r1;
done:
  st.param.b32 [result], %r2;
  ret;
}
)" + kernel(R"(
  { .param .b32 arg; .param .b32 back;
    st.param.b32 [arg], %r1;
    call.uni (back), sum, (arg);
    ld.param.b32 %r5, [back]; }
  st.global.u32 [%rd0], %r5;)"),
                GetParam());
  auto* out = rig.buffer<uint32_t>(0, 64);
  rig.launch("k", 0, {.threads = 64}, {address_of(out), 0, 0});
  rig.run();
  EXPECT_EQ(rig.running(), 0);
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], i * (i + 1) / 2) << i;
}

TEST_P(EngineTest, AnAccessBeyondABufferNamesIt) {
  EngineRig rig(kernel("st.global.u32 [%rd0], %r4;"), GetParam());
  auto* out = rig.buffer<uint32_t>(0, 40);
  rig.launch("k", 0, {.blocks = 1, .threads = 64}, {address_of(out), 0, 0});
  rig.run();
  EXPECT_EQ(rig.running(), 0);
  ASSERT_EQ(rig.engine().findings().size(), 1u);
  const Finding& finding = rig.engine().findings()[0];
  EXPECT_EQ(finding.kind, Finding::Kind::kOutOfBounds);
  EXPECT_EQ(finding.place.thread[0], 40u);
  EXPECT_TRUE(finding.write);
  EXPECT_EQ(finding.address, address_of(out + 40));
}

TEST_P(EngineTest, BlocksThatDoNotFitWaitTheirTurn) {
  // Every block adds one and waits until all have: more blocks than are resident hang.
  EngineRig rig(kernel(R"(
  ld.param.u64 %rd5, [a];
  ld.param.u64 %rd6, [b];
  cvt.u32.u64 %r9, %rd6;
  atom.add.release.gpu.global.u32 %r5, [%rd5], 1;
spin:
  ld.acquire.gpu.global.u32 %r6, [%rd5];
  setp.lt.u32 %p1, %r6, %r9;
  @%p1 bra spin;)"),
                GetParam());
  // 120 KiB of shared memory: one block on each of 132 multiprocessors.
  constexpr uint32_t kShared = 120 * 1024;
  for (uint64_t blocks : {132, 133}) {
    auto* out = rig.buffer<uint32_t>(0, 1);
    auto* count = rig.buffer<uint32_t>(0, 1);
    rig.launch(
        "k", 0,
        {.blocks = static_cast<uint32_t>(blocks), .threads = 1, .dynamic_shared_bytes = kShared},
        {address_of(out), address_of(count), blocks});
    rig.run();
    EXPECT_EQ(*count, 132u);
    EXPECT_EQ(rig.running(), blocks == 132 ? 0 : 1);
  }
  EXPECT_EQ(rig.engine().waiters(1000).size(), 132u);
}

TEST(EnginePace, ASlowRankTakesLongerAndComputesTheSame) {
  std::string text = kernel(
      "ld.param.u64 %rd5, [a]; ld.global.u32 %r5, [%rd5]; add.u32 %r6, %r5, %r4;"
      "st.global.u32 [%rd0], %r6;");
  Time ends[2] = {};
  for (uint32_t slow : {0u, 1u}) {
    EngineRig rig(text, {});
    auto* out = rig.buffer<uint32_t>(0, 64);
    auto* data = rig.buffer<uint32_t>(1, 1);
    *data = 5;
    rig.engine().set_pace(0, slow == 0 ? 1 : 4);
    rig.launch("k", 0, {.threads = 64}, {address_of(out), address_of(data), 0});
    rig.run();
    ends[slow] = rig.last_end();
    for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], 5 + i);
  }
  EXPECT_GT(ends[1], 2 * ends[0]);
  EXPECT_LT(ends[1], 6 * ends[0]);
}

TEST(EngineDeterminism, TheSameRunTakesTheSameTime) {
  Time first = 0;
  for (int i = 0; i < 2; ++i) {
    EngineRig rig(kPingPong, {});
    auto* flag0 = rig.buffer<uint32_t>(0, 1);
    auto* flag1 = rig.buffer<uint32_t>(1, 1);
    rig.launch("pong", 0, {.threads = 1}, {address_of(flag0), address_of(flag1), 1});
    rig.launch("pong", 1, {.threads = 1}, {address_of(flag1), address_of(flag0), 0});
    rig.run();
    if (i == 1) {
      EXPECT_EQ(rig.last_end(), first);
    }
    first = rig.last_end();
  }
}

}  // namespace
}  // namespace cb::sim
