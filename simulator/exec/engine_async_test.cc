// mbarriers and asynchronous copies in whole kernels, in every mode.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "simulator/exec/engine_rig.h"

namespace cb::sim {
namespace {

using ::testing::HasSubstr;

class EngineAsync : public ::testing::TestWithParam<EngineRig::Mode> {};
INSTANTIATE_TEST_SUITE_P(Modes, EngineAsync, ::testing::ValuesIn(EngineRig::all_modes()));

/// %rd1 out, %rd2 a, %rd3 b; %r1 the thread, %r2 the barrier, %r3 the tile, %rd0 &out[thread].
std::string kernel(const std::string& body) {
  return R"(.shared .align 16 .b8 tile[8192];
.shared .align 8 .b8 bar[64];
.visible .entry k(.param .u64 out, .param .u64 a, .param .u64 b)
{
  .reg .pred %p<10>; .reg .b16 %h<4>; .reg .b32 %r<40>; .reg .b64 %rd<20>;
  ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [a]; ld.param.u64 %rd3, [b];
  mov.u32 %r1, %tid.x; mov.u32 %r2, bar; mov.u32 %r3, tile;
  mul.wide.u32 %rd4, %r1, 4; add.s64 %rd0, %rd1, %rd4;
)" + body +
         "\n  ret;\n}\n";
}

/// Waits for the phase of parity `parity` of the barrier at [%r2 + offset].
std::string wait(int parity, const std::string& name, int offset = 0) {
  return name + ":\n  mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r2+" +
         std::to_string(offset) + "], " + std::to_string(parity) + ";\n  @!%p9 bra " + name + ";\n";
}

constexpr char kInit1[] = R"(
  setp.eq.u32 %p1, %r1, 0;
  @%p1 mbarrier.init.shared::cta.b64 [%r2], 1;
  bar.sync 0;
)";

const Finding& only_finding(EngineRig& rig) {
  static const Finding none;
  EXPECT_EQ(rig.engine().findings().size(), 1u);
  return rig.engine().findings().empty() ? none : rig.engine().findings()[0];
}

TEST_P(EngineAsync, ThreadsMeetAtAnMbarrierPhaseByPhase) {
  EngineRig rig(kernel(R"(
  setp.eq.u32 %p1, %r1, 0;
  @%p1 mbarrier.init.shared.b64 [%r2], 96;
  bar.sync 0;
  mov.u32 %r5, 0; mov.u32 %r6, 0;
round:
  shl.b32 %r7, %r1, 2; add.u32 %r7, %r7, %r3;
  add.u32 %r8, %r1, %r5;
  st.shared.u32 [%r7], %r8;
  mbarrier.arrive.shared.b64 %rd5, [%r2];
full:
  mbarrier.test_wait.shared.b64 %p2, [%r2], %rd5;
  @!%p2 bra full;
  sub.u32 %r9, 95, %r1; shl.b32 %r9, %r9, 2; add.u32 %r9, %r9, %r3;
  ld.shared.u32 %r10, [%r9];
  add.u32 %r6, %r6, %r10;
  mbarrier.arrive.release.cta.shared::cta.b64 %rd6, [%r2], 1;
empty:
  mbarrier.try_wait.acquire.cta.shared::cta.b64 %p3, [%r2], %rd6, 1000;
  @!%p3 bra empty;
  add.u32 %r5, %r5, 1;
  setp.lt.u32 %p4, %r5, 5;
  @%p4 bra round;
  st.global.u32 [%rd0], %r6;)"),
                GetParam());
  auto* out = rig.buffer<uint32_t>(0, 96);
  rig.launch("k", 0, {.threads = 96}, {address_of(out), 0, 0});
  rig.run();
  EXPECT_EQ(rig.running(), 0);
  for (uint32_t i = 0; i < 96; ++i) EXPECT_EQ(out[i], 5 * (95 - i) + 10) << i;
}

TEST_P(EngineAsync, DroppedArrivalsAreNotExpectedAgain) {
  EngineRig rig(kernel(R"(
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra end;
  mbarrier.init.shared.b64 [%r2], 5;
  mbarrier.arrive.noComplete.shared.b64 %rd5, [%r2], 2;
  mbarrier.pending_count.b64 %r5, %rd5;
  mbarrier.arrive_drop.shared.b64 %rd6, [%r2], 3;
  mbarrier.pending_count.b64 %r6, %rd6;
  mbarrier.arrive.shared.b64 %rd7, [%r2];
  mbarrier.pending_count.b64 %r7, %rd7;
  mbarrier.test_wait.parity.shared.b64 %p2, [%r2], 0;
  mbarrier.test_wait.parity.shared.b64 %p3, [%r2], 1;
  selp.u32 %r8, 1, 0, %p2; selp.u32 %r9, 1, 0, %p3;
  mbarrier.arrive_drop.expect_tx.shared.b64 %rd8, [%r2], 32;
  mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r2], 32;
  mbarrier.test_wait.parity.shared.b64 %p3, [%r2], 1;
  selp.u32 %r10, 1, 0, %p3;
  mbarrier.inval.shared.b64 [%r2];
  st.global.u32 [%rd1], %r5; st.global.u32 [%rd1+4], %r6; st.global.u32 [%rd1+8], %r7;
  st.global.u32 [%rd1+12], %r8; st.global.u32 [%rd1+16], %r9; st.global.u32 [%rd1+20], %r10;
end:)"),
                GetParam());
  auto* out = rig.buffer<uint32_t>(0, 6);
  rig.launch("k", 0, {}, {address_of(out), 0, 0});
  rig.run();
  EXPECT_THAT(std::vector<uint32_t>(out, out + 6), ::testing::ElementsAre(5, 3, 2, 1, 0, 1));
}

TEST_P(EngineAsync, MisuseOfAnMbarrierIsNamed) {
  struct Case {
    std::string body;
    Finding::Kind kind;
    std::string text;
  };
  const Case cases[] = {
      {"mbarrier.arrive.shared.b64 _, [%r2];", Finding::Kind::kIllegalInstruction,
       "mbarrier at shared +0: the mbarrier is not initialised"},
      {"mbarrier.init.shared.b64 [%r2], 1; mbarrier.arrive.shared.b64 _, [%r2], 2;",
       Finding::Kind::kIllegalInstruction, "2 arrivals where the phase waits for 1"},
      {"mbarrier.init.shared.b64 [%r2], 0;", Finding::Kind::kIllegalInstruction, "a count of 0"},
      {"mbarrier.init.shared.b64 [%r2+4], 1;", Finding::Kind::kMisaligned, "not a multiple of 8"},
      {"mbarrier.init.shared.b64 [%r2], 1; mbarrier.inval.shared.b64 [%r2];"
       "mbarrier.test_wait.parity.shared.b64 %p1, [%r2], 0;",
       Finding::Kind::kIllegalInstruction, "it is invalidated"},
      {"mbarrier.init.shared.b64 [%r2], 1; mbarrier.expect_tx.relaxed.cta.shared.b64 [%r2], "
       "1048575; mbarrier.expect_tx.relaxed.cta.shared.b64 [%r2], 1;",
       Finding::Kind::kIllegalInstruction, "1048576 bytes outstanding"},
      {"mbarrier.init.shared.b64 [%r2+8256], 1;", Finding::Kind::kOutOfBounds, "shared memory"},
      {"mbarrier.init.shared.b64 [%r2], 1; mbarrier.arrive.noComplete.shared.b64 _, [%r2], 1;",
       Finding::Kind::kIllegalInstruction, ".noComplete would complete the phase"},
  };
  for (const Case& one : cases) {
    EngineRig rig(kernel(one.body), GetParam());
    rig.launch("k", 0, {.threads = 1}, {0, 0, 0});
    rig.run();
    const Finding& finding = only_finding(rig);
    EXPECT_EQ(finding.kind, one.kind) << one.body;
    EXPECT_THAT(finding.detail, HasSubstr(one.text));
    EXPECT_THAT(finding.place.instruction, HasSubstr("mbarrier."));
  }
}

TEST_P(EngineAsync, ADeadlockNamesTheMbarrier) {
  EngineRig rig(kernel(R"(
  setp.eq.u32 %p1, %r1, 0;
  @%p1 mbarrier.init.shared.b64 [%r2+16], 4;
  @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r2+16], 1024;
  @%p1 mbarrier.arrive.shared.b64 _, [%r2+16], 2;
)" + wait(0, "w", 16)),
                GetParam());
  rig.launch("k", 0, {}, {0, 0, 0});
  rig.run();
  auto waiters = rig.engine().waiters(4);
  ASSERT_EQ(waiters.size(), 1u);
  EXPECT_EQ(waiters[0].waits_for,
            "mbarrier at shared +16: phase 0, 3 of 4 arrived, 1024 bytes outstanding");
}

TEST_P(EngineAsync, ABulkCopyThereAndBack) {
  std::string body = std::string(kInit1) + R"(
  @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 4096;
  @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd2], 4096, [%r2];
)" + wait(0, "arrived") +
                     R"(
  shl.b32 %r5, %r1, 2; add.u32 %r5, %r5, %r3;
  ld.shared.u32 %r6, [%r5]; add.u32 %r6, %r6, 1; st.shared.u32 [%r5], %r6;
  fence.proxy.async.shared::cta;
  bar.sync 0;
  @!%p1 bra end;
  cp.async.bulk.global.shared::cta.bulk_group [%rd3], [%r3], 4096;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group.read 0;
end:)";
  EngineRig rig(kernel(body), GetParam());
  auto* a = rig.buffer<uint32_t>(0, 1024);
  auto* b = rig.buffer<uint32_t>(1, 1024);
  for (uint32_t i = 0; i < 1024; ++i) a[i] = i * 77;
  rig.launch("k", 0, {.threads = 128}, {0, address_of(a), address_of(b)});
  rig.run();
  EXPECT_EQ(rig.running(), 0);
  EXPECT_TRUE(rig.engine().findings().empty());
  for (uint32_t i = 0; i < 1024; ++i) EXPECT_EQ(b[i], i * 77 + (i < 128 ? 1 : 0));
  if (GetParam().timed) {
    EXPECT_EQ(rig.engine().resources().link_bytes(0, 1), 4096u);
    EXPECT_GT(rig.last_end(), 1'500'000u);  // HBM, and the way to the peer
  }
}

TEST_P(EngineAsync, WhoDoesNotWaitSeesTheOldBytes) {
  EngineRig rig(kernel(std::string(kInit1) + R"(
  @!%p1 bra end;
  st.shared.u32 [%r3], 5;
  mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 16;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r3], [%rd2], 16, [%r2];
  ld.shared.u32 %r5, [%r3];
  st.global.u32 [%rd1], %r5;
)" + wait(0, "w") + R"(
  ld.shared.u32 %r5, [%r3];
  st.global.u32 [%rd1+4], %r5;
end:)"),
                GetParam());
  auto* out = rig.buffer<uint32_t>(0, 2);
  auto* a = rig.buffer<uint32_t>(0, 4);
  a[0] = 9;
  rig.launch("k", 0, {}, {address_of(out), address_of(a), 0});
  rig.run();
  EXPECT_EQ(out[0], GetParam().timed ? 5u : 9u);
  EXPECT_EQ(out[1], 9u);
}

TEST_P(EngineAsync, LanesCopyWithZeroFill) {
  // 16 bytes a lane: all of them, the first (lane % 17) of them, none.
  EngineRig rig(kernel(R"(
  shl.b32 %r5, %r1, 4; add.u32 %r6, %r3, %r5;
  mul.wide.u32 %rd5, %r1, 16; add.s64 %rd6, %rd2, %rd5; add.s64 %rd7, %rd1, %rd5;
  rem.u32 %r7, %r1, 17;
  and.b32 %r8, %r1, 1; setp.eq.u32 %p1, %r8, 1;
  cp.async.cg.shared.global [%r6], [%rd6], 16;
  cp.async.commit_group;
  cp.async.ca.shared.global [%r6+512], [%rd6], 16, %r7;
  cp.async.commit_group;
  cp.async.ca.shared.global [%r6+1024], [%rd6], 16, %p1;
  cp.async.ca.shared.global [%r6+1536], [%rd6+8], 8;
  cp.async.wait_group 1;
  ld.shared.v4.u32 {%r10,%r11,%r12,%r13}, [%r6];
  st.global.v4.u32 [%rd7], {%r10,%r11,%r12,%r13};
  cp.async.wait_group 0;
  ld.shared.v4.u32 {%r10,%r11,%r12,%r13}, [%r6+512];
  st.global.v4.u32 [%rd7+512], {%r10,%r11,%r12,%r13};
  cp.async.wait_all;
  ld.shared.v4.u32 {%r10,%r11,%r12,%r13}, [%r6+1024];
  st.global.v4.u32 [%rd7+1024], {%r10,%r11,%r12,%r13};
  ld.shared.v2.u32 {%r10,%r11}, [%r6+1536];
  st.global.v2.u32 [%rd7+1536], {%r10,%r11};)"),
                GetParam());
  auto* out = rig.buffer<uint8_t>(0, 2048);
  auto* a = rig.buffer<uint8_t>(1, 512);
  std::mt19937 random(1);
  for (size_t i = 0; i < 512; ++i) a[i] = static_cast<uint8_t>(random() | 1);
  rig.launch("k", 0, {}, {address_of(out), address_of(a), 0});
  rig.run();
  EXPECT_EQ(rig.running(), 0);
  for (size_t i = 0; i < 512; ++i) {
    size_t lane = i / 16, at = i % 16;
    EXPECT_EQ(out[i], a[i]);
    EXPECT_EQ(out[512 + i], at < lane % 17 ? a[i] : 0) << i;
    EXPECT_EQ(out[1024 + i], lane % 2 == 0 ? a[i] : 0) << i;
    if (at < 8) {
      EXPECT_EQ(out[1536 + i], a[i + 8]);
    }
  }
}

TEST_P(EngineAsync, CopiesOfAThreadArriveAtAnMbarrier) {
  for (bool increments : {true, false}) {
    std::string count = increments ? "1" : "33";
    std::string noinc = increments ? "" : ".noinc";
    EngineRig rig(kernel(R"(
  setp.eq.u32 %p1, %r1, 0;
  @%p1 mbarrier.init.shared.b64 [%r2], )" +
                         count + R"(;
  bar.sync 0;
  shl.b32 %r5, %r1, 2; add.u32 %r6, %r3, %r5; add.s64 %rd5, %rd2, %rd4;
  cp.async.ca.shared.global [%r6], [%rd5], 4;
  cp.async.mbarrier.arrive)" +
                         noinc + R"(.shared.b64 [%r2];
  @%p1 mbarrier.arrive.shared.b64 _, [%r2];
)" + wait(0, "w") + R"(
  xor.b32 %r5, %r5, 124; add.u32 %r6, %r3, %r5;
  ld.shared.u32 %r7, [%r6];
  st.global.u32 [%rd0], %r7;)"),
                  GetParam());
    auto* out = rig.buffer<uint32_t>(0, 32);
    auto* a = rig.buffer<uint32_t>(0, 32);
    for (uint32_t i = 0; i < 32; ++i) a[i] = i * i + 1;
    rig.launch("k", 0, {}, {address_of(out), address_of(a), 0});
    rig.run();
    EXPECT_EQ(rig.running(), 0);
    for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(out[i], (31 - i) * (31 - i) + 1);
  }
}

TEST_P(EngineAsync, StoresAndReductionsTellAnMbarrier) {
  EngineRig rig(kernel("st.shared.u32 [%r3+4096], 7;" + std::string(kInit1) + R"(
  shl.b32 %r5, %r1, 4; add.u32 %r6, %r3, %r5;
  add.u32 %r7, %r1, 100; not.b32 %r8, %r1;
  @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 640;
  st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r6], {%r7,%r8,%r1,%r7}, [%r2];
  red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r3+4096], 3, [%r2];
)" + wait(0, "w") + R"(
  ld.shared.v4.u32 {%r10,%r11,%r12,%r13}, [%r6];
  add.u32 %r10, %r10, %r11; add.u32 %r10, %r10, %r12; add.u32 %r10, %r10, %r13;
  ld.shared.u32 %r14, [%r3+4096]; add.u32 %r10, %r10, %r14;
  st.global.u32 [%rd0], %r10;)"),
                GetParam());
  auto* out = rig.buffer<uint32_t>(0, 32);
  rig.launch("k", 0, {}, {address_of(out), 0, 0});
  rig.run();
  EXPECT_EQ(rig.running(), 0);
  for (uint32_t i = 0; i < 32; ++i) {
    EXPECT_EQ(out[i], 2 * (i + 100) + ~i + i + 7 + 96) << i;
  }
}

TEST_P(EngineAsync, ABlockThatEndsBeforeItsCopyWasReadIsAFinding) {
  EngineRig rig(kernel(R"(
  cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r3], 8192;
  cp.async.bulk.commit_group;)"),
                GetParam());
  auto* a = rig.buffer<uint32_t>(0, 2048);
  rig.launch("k", 0, {.threads = 1}, {0, address_of(a), 0});
  rig.run();
  EXPECT_EQ(rig.running(), 0);
  if (!GetParam().timed) return;
  EXPECT_THAT(only_finding(rig).detail, HasSubstr("ended before this copy read its shared memory"));
  EXPECT_THAT(only_finding(rig).place.instruction, HasSubstr("cp.async.bulk.global"));
}

TEST_P(EngineAsync, CopiesAreChecked) {
  struct Case {
    std::string body;
    Finding::Kind kind;
    std::string text;
  };
  const std::string s2g = "cp.async.bulk.global.shared::cta.bulk_group ";
  const Case cases[] = {
      {s2g + "[%rd2], [%r3], 24;", Finding::Kind::kMisaligned, "24 bytes: not a multiple of 16"},
      {s2g + "[%rd2+8], [%r3], 16;", Finding::Kind::kMisaligned, "the destination"},
      {s2g + "[%rd2], [%r3+4], 16;", Finding::Kind::kMisaligned, "the source"},
      {s2g + "[%rd2], [%r3], 4112;", Finding::Kind::kOutOfBounds, "the destination"},
      {s2g + "[%rd2], [%r3+8192], 16384;", Finding::Kind::kOutOfBounds, "the source"},
      {"cp.async.ca.shared.global [%r3], [%rd2], 8, 9;", Finding::Kind::kIllegalInstruction,
       "9 bytes of source for 8"},
      {"cp.async.ca.shared.global [%r3], [%rd2+4], 8;", Finding::Kind::kMisaligned, "the source"},
      {"cp.async.ca.shared.global [%r3], [%rd2+4096], 4;", Finding::Kind::kOutOfBounds,
       "the source"},
      {"mbarrier.init.shared.b64 [%r2], 1;"
       "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
       "[%r3], [%rd2], 16, [%r2], 2;",
       Finding::Kind::kOutOfBounds, "the mask names block 1"},
  };
  for (const Case& one : cases) {
    EngineRig rig(kernel(one.body), GetParam());
    auto* a = rig.buffer<uint32_t>(0, 1024);
    rig.launch("k", 0, {.threads = 1}, {0, address_of(a), 0});
    rig.run();
    EXPECT_EQ(only_finding(rig).kind, one.kind) << one.body;
    EXPECT_THAT(only_finding(rig).detail, HasSubstr(one.text));
  }
}

// The blocks of a cluster tell each other. %r20: the barrier, %r21: the tile, of the other block of
// two.
constexpr char kOther[] = R"(
  mov.u32 %r4, %ctaid.x; xor.b32 %r5, %r4, 1;
  mapa.shared::cluster.u32 %r20, %r2, %r5; mapa.shared::cluster.u32 %r21, %r3, %r5;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 mbarrier.init.shared::cta.b64 [%r2], 1;
  @%p1 fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive; barrier.cluster.wait;
  mad.lo.u32 %r6, %r4, 32, %r1; mul.wide.u32 %rd4, %r6, 4; add.s64 %rd0, %rd1, %rd4;
)";
constexpr char kLeaveTogether[] = "\n  barrier.cluster.arrive; barrier.cluster.wait;";

TEST_P(EngineAsync, BlocksOfAClusterSendToEachOther) {
  const std::string sends[] = {
      // Stores of registers.
      R"(shl.b32 %r7, %r1, 2; add.u32 %r8, %r21, %r7;
  @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 128;
  st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r8], %r9, [%r20];)",
      // Own shared memory to the other's.
      R"(shl.b32 %r7, %r1, 2; add.u32 %r8, %r3, %r7; st.shared.u32 [%r8+256], %r9;
  fence.proxy.async.shared::cta; bar.sync 0;
  @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 128;
  add.u32 %r8, %r3, 256;
  @%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r21], [%r8], 128, [%r20];)",
      // A plain store, and an arrival at the other's barrier.
      R"(shl.b32 %r7, %r1, 2; add.u32 %r8, %r21, %r7;
  st.shared::cluster.u32 [%r8], %r9;
  bar.warp.sync 0xffffffff;
  @%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r20];)",
  };
  for (const std::string& send : sends) {
    EngineRig rig(kernel(std::string(kOther) + "mad.lo.u32 %r9, %r4, 1000, %r1;\n" + send +
                         wait(0, "w") + "shl.b32 %r7, %r1, 2; add.u32 %r8, %r3, %r7;\n" +
                         "ld.shared.u32 %r10, [%r8]; st.global.u32 [%rd0], %r10;" + kLeaveTogether),
                  GetParam());
    auto* out = rig.buffer<uint32_t>(0, 64);
    rig.launch("k", 0, {.blocks = 2, .cluster = 2}, {address_of(out), 0, 0});
    rig.run();
    EXPECT_EQ(rig.running(), 0);
    ASSERT_TRUE(rig.engine().findings().empty()) << rig.engine().findings()[0].detail;
    for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], (1 - i / 32) * 1000 + i % 32) << send;
  }
}

TEST_P(EngineAsync, OneCopyReachesSeveralBlocks) {
  EngineRig rig(kernel(std::string(kOther) + R"(
  mov.u16 %h1, 11; mov.u32 %r7, %cluster_ctarank;
  setp.ne.u32 %p2, %r7, 2; and.pred %p2, %p2, %p1;
  @%p2 mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 128;
  setp.eq.u32 %p3, %r7, 1; and.pred %p3, %p3, %p1;
  @%p3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r3], [%rd2], 128, [%r2], %h1;
  setp.eq.u32 %p4, %r7, 2;
  @%p4 bra out;
)" + wait(0, "w") + R"(
  shl.b32 %r7, %r1, 2; add.u32 %r8, %r3, %r7;
  ld.shared.u32 %r10, [%r8]; st.global.u32 [%rd0], %r10;
out:)" + kLeaveTogether),
                GetParam());
  auto* out = rig.buffer<uint32_t>(0, 128);
  auto* a = rig.buffer<uint32_t>(0, 32);
  for (uint32_t i = 0; i < 32; ++i) a[i] = 7 * i + 1;
  rig.launch("k", 0, {.blocks = 4, .cluster = 4}, {address_of(out), address_of(a), 0});
  rig.run();
  EXPECT_EQ(rig.running(), 0);
  ASSERT_TRUE(rig.engine().findings().empty()) << rig.engine().findings()[0].detail;
  for (uint32_t i = 0; i < 128; ++i) EXPECT_EQ(out[i], i / 32 == 2 ? 0 : 7 * (i % 32) + 1) << i;
}

TEST_P(EngineAsync, SendingToABlockThatEndsIsAFinding) {
  // Block 1 is sent to, and does not wait.
  EngineRig rig(kernel(std::string(kOther) + R"(
  setp.eq.u32 %p2, %r4, 1;
  @%p2 bra end;
  st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r21], %r1, [%r20];
  nanosleep.u32 100000;
  @%p1 st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r21], %r1, [%r20];
end:)"),
                GetParam());
  rig.launch("k", 0, {.blocks = 2, .cluster = 2}, {0, 0, 0});
  rig.run();
  EXPECT_EQ(rig.running(), 0);
  EXPECT_THAT(only_finding(rig).detail, HasSubstr("has ended"));
}

}  // namespace
}  // namespace cb::sim
