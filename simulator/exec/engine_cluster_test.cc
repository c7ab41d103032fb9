// Thread block clusters: who is in one, each other's shared memory, the barrier, and what is wrong
// use of them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "simulator/exec/engine_rig.h"

namespace cb::sim {
namespace {

using ::testing::HasSubstr;

class EngineCluster : public ::testing::TestWithParam<EngineRig::Mode> {
 protected:
  /// Runs `body` and gives back the word that each thread left in %r0.
  std::vector<uint32_t> run(const std::string& body, const EngineRig::Shape& shape) {
    rig_.reset();  // there is one window of addresses in a process
    rig_ = std::make_unique<EngineRig>(R"(
.shared .align 16 .b8 board[1024];
.visible .entry k(.param .u64 out)
{
  .reg .pred %p<10>; .reg .b32 %r<40>; .reg .b64 %rd<20>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;
  mov.u32 %r5, %cluster_ctarank; mov.u32 %r6, %cluster_nctarank;
  mad.lo.u32 %r4, %r2, %r3, %r1; mul.wide.u32 %rd2, %r4, 4; add.s64 %rd0, %rd1, %rd2;
  mov.u32 %r0, 0;
)" + body + "\nst.global.u32 [%rd0], %r0;\nret;\n}\n",
                                       GetParam());
    uint64_t threads = uint64_t{shape.blocks} * shape.threads;
    auto* out = rig_->buffer<uint32_t>(0, threads);
    rig_->launch("k", 0, shape, {address_of(out)});
    rig_->run();
    return {out, out + threads};
  }

  /// The only finding's text.
  std::string finding(const std::string& body, const EngineRig::Shape& shape, Finding::Kind kind) {
    run(body, shape);
    const auto& findings = rig_->engine().findings();
    EXPECT_EQ(findings.size(), 1u);
    if (findings.empty()) return "";
    EXPECT_EQ(findings.front().kind, kind) << findings.front().detail;
    return findings.front().detail;
  }

  std::unique_ptr<EngineRig> rig_;
};
INSTANTIATE_TEST_SUITE_P(Modes, EngineCluster, ::testing::ValuesIn(EngineRig::all_modes()));

TEST_P(EngineCluster, BlocksKnowTheirPlace) {
  const std::string body = R"(
  mov.u32 %r7, %clusterid.x; mov.u32 %r8, %nclusterid.x; mov.u32 %r9, %cluster_ctaid.x;
  mov.u32 %r10, %cluster_nctaid.x; mov.u32 %r11, %cluster_nctaid.y;
  mov.pred %p1, %is_explicit_cluster; selp.u32 %r12, 1, 0, %p1;
  mad.lo.u32 %r0, %r5, 10, %r6; mad.lo.u32 %r0, %r0, 10, %r7; mad.lo.u32 %r0, %r0, 10, %r8;
  mad.lo.u32 %r0, %r0, 10, %r9; mad.lo.u32 %r0, %r0, 10, %r10; mad.lo.u32 %r0, %r0, 10, %r11;
  mad.lo.u32 %r0, %r0, 10, %r12;)";
  auto in_clusters = run(body, {.blocks = 8, .threads = 32, .cluster = 4});
  for (uint32_t block = 0; block < 8; ++block) {
    uint32_t rank = block % 4;
    uint32_t expected = rank * 10000000 + 4000000 + block / 4 * 100000 + 20000 + rank * 1000 + 411;
    EXPECT_EQ(in_clusters[block * 32], expected);
  }
  auto alone = run(body, {.blocks = 8, .threads = 32});
  for (uint32_t block = 0; block < 8; ++block) {
    EXPECT_EQ(alone[block * 32], 1000000 + block * 100000 + 80000 + 110);
  }
}

/// Every block leaves 100 * block + thread on its board, and reads that of the next one. `read`
/// gets the place on the own board in %r7 (offset) and %rd7 (generic), the next rank in %r8.
std::string exchange(const std::string& read) {
  return R"(
  mov.u32 %r9, board; mad.lo.u32 %r7, %r1, 4, %r9;
  cvt.u64.u32 %rd7, %r7; cvta.shared.u64 %rd7, %rd7;
  mad.lo.u32 %r10, %r2, 100, %r1; st.shared.u32 [%r7], %r10;
  add.u32 %r8, %r5, 1; rem.u32 %r8, %r8, %r6;
  barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
)" + read +
         "\nbarrier.cluster.arrive; barrier.cluster.wait;\n";
}

TEST_P(EngineCluster, BlocksReadEachOthersSharedMemory) {
  const char* reads[] = {
      "mapa.shared::cluster.u32 %r11, %r7, %r8; ld.shared::cluster.u32 %r0, [%r11];",
      "mapa.shared::cluster.u32 %r11, board, %r8; mad.lo.u32 %r11, %r1, 4, %r11;"
      "ld.acquire.cluster.shared::cluster.u32 %r0, [%r11];",
      "mapa.u64 %rd8, %rd7, %r8; ld.u32 %r0, [%rd8];",
      "mapa.u64 %rd8, %rd7, %r8; ld.relaxed.cluster.u32 %r0, [%rd8];",
      "cvt.u64.u32 %rd8, %r7; mapa.shared::cluster.u64 %rd8, %rd8, %r8;"
      "cvta.shared::cluster.u64 %rd8, %rd8; ld.u32 %r0, [%rd8];",
      "mapa.u64 %rd8, %rd7, %r8; cvta.to.shared::cluster.u64 %rd8, %rd8; cvt.u32.u64 %r11, %rd8;"
      "ld.shared::cluster.u32 %r0, [%r11];",
      "mapa.shared::cluster.u32 %r11, %r7, %r8; atom.shared::cluster.add.u32 %r0, [%r11], 0;",
      "mapa.u64 %rd8, %rd7, %r8; atom.cluster.or.b32 %r0, [%rd8], 0;",
  };
  for (const char* read : reads) {
    SCOPED_TRACE(read);
    auto values = run(exchange(read), {.blocks = 12, .threads = 64, .cluster = 4});
    EXPECT_TRUE(rig_->engine().findings().empty());
    for (uint32_t block = 0; block < 12; ++block) {
      uint32_t next = block / 4 * 4 + (block + 1) % 4;
      for (uint32_t thread = 0; thread < 64; ++thread) {
        EXPECT_EQ(values[block * 64 + thread], next * 100 + thread);
      }
    }
  }
}

TEST_P(EngineCluster, LanesOfOneLoadReachSeveralBlocks) {
  auto values = run(exchange("rem.u32 %r8, %r1, %r6; mapa.shared::cluster.u32 %r11, %r7, %r8;"
                             "ld.shared::cluster.u32 %r0, [%r11];"),
                    {.blocks = 8, .threads = 48, .cluster = 8});
  for (uint32_t block = 0; block < 8; ++block) {
    for (uint32_t thread = 0; thread < 48; ++thread) {
      EXPECT_EQ(values[block * 48 + thread], thread % 8 * 100 + thread);
    }
  }
}

TEST_P(EngineCluster, StoresAndReductionsReachOtherBlocks) {
  // Block 0's words: 0 counts all threads, 1 + rank is what each block stored.
  auto values = run(R"(
  setp.eq.u32 %p1, %r1, 0;
  mov.u32 %r9, board;
  @%p1 st.shared.u32 [%r9], 0;
  barrier.cluster.arrive; barrier.cluster.wait;
  mapa.shared::cluster.u32 %r10, %r9, 0;
  red.relaxed.cluster.shared::cluster.add.u32 [%r10], 1;
  mad.lo.u32 %r11, %r5, 4, %r10; add.u32 %r12, %r5, 7;
  @%p1 st.release.cluster.shared::cluster.u32 [%r11+4], %r12;
  barrier.cluster.arrive.release; barrier.cluster.wait.acquire;
  mad.lo.u32 %r13, %r1, 4, %r9;
  @%p1 bra done;
  setp.gt.u32 %p2, %r1, 4;
  @%p2 bra done;
  ld.shared.u32 %r0, [%r13];
  bra end;
done:
  ld.shared.u32 %r0, [%r9];
end:)",
                    {.blocks = 4, .threads = 32, .cluster = 4});
  EXPECT_EQ(values[0], 128u);
  for (uint32_t rank = 0; rank < 4; ++rank) EXPECT_EQ(values[1 + rank], rank + 7);
}

TEST_P(EngineCluster, AddressesSayWhoseTheyAre) {
  auto values = run(exchange(R"(
  mapa.shared::cluster.u32 %r11, %r7, %r8; getctarank.shared::cluster.u32 %r12, %r11;
  getctarank.shared::cluster.u32 %r13, %r7;
  mapa.u64 %rd8, %rd7, %r8; getctarank.u64 %r14, %rd8;
  isspacep.shared::cluster %p1, %rd8; isspacep.shared::cta %p2, %rd8;
  isspacep.shared::cluster %p3, %rd0; isspacep.shared::cluster %p4, %rd7;
  selp.u32 %r15, 1, 0, %p1; selp.u32 %r16, 1, 0, %p2; selp.u32 %r17, 1, 0, %p3;
  selp.u32 %r18, 1, 0, %p4;
  mad.lo.u32 %r0, %r12, 10, %r13; mad.lo.u32 %r0, %r0, 10, %r14; mad.lo.u32 %r0, %r0, 10, %r15;
  mad.lo.u32 %r0, %r0, 10, %r16; mad.lo.u32 %r0, %r0, 10, %r17; mad.lo.u32 %r0, %r0, 10, %r18;)"),
                    {.blocks = 4, .threads = 32, .cluster = 2});
  for (uint32_t block = 0; block < 4; ++block) {
    uint32_t own = block % 2, next = 1 - own;
    EXPECT_EQ(values[block * 32 + 5], next * 1000000 + own * 100000 + next * 10000 + 1001);
  }
}

TEST_P(EngineCluster, ThreadsWorkBetweenArrivingAndWaiting) {
  // 40 rounds, in which each thread reads what its neighbour wrote in the round before.
  auto values = run(R"(
  mov.u32 %r9, board; mad.lo.u32 %r7, %r1, 4, %r9;
  add.u32 %r8, %r5, 1; rem.u32 %r8, %r8, %r6; mapa.shared::cluster.u32 %r10, %r7, %r8;
  mov.u32 %r11, 0; mov.u32 %r12, %r5;
round:
  st.shared.u32 [%r7], %r12;
  barrier.cluster.arrive.release;
  add.u32 %r11, %r11, 1;
  barrier.cluster.wait;
  ld.shared::cluster.u32 %r12, [%r10];
  add.u32 %r12, %r12, 1;
  barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;
  setp.lt.u32 %p1, %r11, 40;
  @%p1 bra round;
  mov.u32 %r0, %r12;)",
                    {.blocks = 4, .threads = 96, .cluster = 4});
  for (uint32_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], (i / 96 + 40) % 4 + 40);
}

TEST_P(EngineCluster, ThreadsThatExitedAreNotWaitedFor) {
  auto values = run(R"(
  setp.lt.u32 %p1, %r1, 40;
  @!%p1 barrier.cluster.arrive;
  @%p1 ret;
  barrier.cluster.wait;
  mov.u32 %r0, 5;)",
                    {.blocks = 2, .threads = 64, .cluster = 2});
  EXPECT_EQ(rig_->running(), 0);
  for (uint32_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], i % 64 < 40 ? 0u : 5u);
}

TEST_P(EngineCluster, DivergedLanesMeetAtTheBarrier) {
  auto values = run(R"(
  and.b32 %r7, %r1, 1; setp.eq.u32 %p1, %r7, 0;
  @%p1 bra even;
  barrier.cluster.arrive;
  barrier.cluster.wait;
  mov.u32 %r0, 1;
  bra join;
even:
  barrier.cluster.arrive;
  barrier.cluster.wait;
  mov.u32 %r0, 2;
join:)",
                    {.blocks = 2, .threads = 32, .cluster = 2});
  for (uint32_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], i % 2 == 0 ? 2u : 1u);
}

TEST_P(EngineCluster, ABlockAloneIsItsOwnCluster) {
  auto values = run(exchange("mapa.shared::cluster.u32 %r11, %r7, 0;"
                             "ld.shared::cluster.u32 %r0, [%r11];"),
                    {.blocks = 3, .threads = 64});
  for (uint32_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], i / 64 * 100 + i % 64);
}

TEST_P(EngineCluster, BlocksOfAClusterRunInOneGpc) {
  // SMs 0 to 95 are in GPCs of 16, the last 36 in two of 18. One block fills an SM.
  auto values = run("mov.u32 %r0, %smid; barrier.cluster.arrive; barrier.cluster.wait;",
                    {.blocks = 24 * 16, .threads = 1024, .registers = 64, .cluster = 16});
  EXPECT_EQ(rig_->running(), 0);
  std::set<uint32_t> used;
  for (uint32_t cluster = 0; cluster < 24; ++cluster) {
    std::set<uint32_t> gpcs, sms;
    for (uint32_t rank = 0; rank < 16; ++rank) {
      uint32_t sm = values[(cluster * 16 + rank) * 1024];
      sms.insert(sm);
      gpcs.insert(sm < 96 ? sm / 16 : 6 + (sm - 96) / 18);
    }
    EXPECT_EQ(gpcs.size(), 1u);
    EXPECT_EQ(sms.size(), 16u);
    used.insert(gpcs.begin(), gpcs.end());
  }
  EXPECT_EQ(used.size(), 8u);
}

TEST_P(EngineCluster, MemoryOfABlockThatEndedIsNotThere) {
  // Block 1 leaves at once; block 0 reads its memory a while later.
  const std::string leave = R"(
  setp.eq.u32 %p1, %r5, 1;
  @%p1 ret;
  mov.u32 %r9, board; mov.u32 %r20, 0;
  cvt.u64.u32 %rd7, %r9; cvta.shared.u64 %rd7, %rd7; mapa.u64 %rd8, %rd7, 1;
  mapa.shared::cluster.u32 %r10, %r9, 1;
again:
  nanosleep.u32 1000;
  add.u32 %r20, %r20, 1; setp.lt.u32 %p2, %r20, 100;
  @%p2 bra again;
)";
  EngineRig::Shape shape{.blocks = 2, .threads = 32, .cluster = 2};
  EXPECT_THAT(
      finding(leave + "ld.shared::cluster.u32 %r0, [%r10];", shape, Finding::Kind::kUseAfterFree),
      HasSubstr("block 1 of the cluster, which has ended"));
  EXPECT_THAT(finding(leave + "st.u32 [%rd8], 1;", shape, Finding::Kind::kUseAfterFree),
              HasSubstr("block 1 of the cluster, which has ended"));
}

TEST_P(EngineCluster, WrongAddressesAreFound) {
  EngineRig::Shape shape{.blocks = 2, .threads = 32, .cluster = 2};
  EXPECT_THAT(
      finding("mapa.shared::cluster.u32 %r7, board, 2;", shape, Finding::Kind::kIllegalAddress),
      HasSubstr("block 2 of a cluster of 2"));
  EXPECT_THAT(finding("mapa.u64 %rd8, %rd1, 1;", shape, Finding::Kind::kIllegalAddress),
              HasSubstr("no address of the cluster's shared memory"));
  EXPECT_THAT(finding("getctarank.u64 %r0, %rd1;", shape, Finding::Kind::kIllegalAddress),
              HasSubstr("no address of the cluster's shared memory"));
  EXPECT_THAT(finding("xor.b32 %r8, %r5, 1; mapa.shared::cluster.u32 %r7, board, %r8;"
                      "ld.shared::cluster.u32 %r0, [%r7+1024];",
                      shape, Finding::Kind::kOutOfBounds),
              HasSubstr("beyond the 1024 bytes of shared memory of block"));
  EXPECT_THAT(finding("mov.u32 %r7, 0x7000000; ld.shared::cluster.u32 %r0, [%r7];", shape,
                      Finding::Kind::kIllegalAddress),
              HasSubstr("block 6 of a cluster of 2"));
  EXPECT_THAT(finding("mapa.shared::cluster.u32 %r7, board, 1;"
                      "st.shared::cluster.u32 [%r7+2], %r0;",
                      shape, Finding::Kind::kMisaligned),
              HasSubstr("not a multiple of 4"));
}

TEST_P(EngineCluster, ArrivalsAndWaitsAlternate) {
  EngineRig::Shape shape{.blocks = 2, .threads = 32, .cluster = 2};
  EXPECT_THAT(finding("barrier.cluster.arrive; barrier.cluster.arrive;", shape,
                      Finding::Kind::kBarrierDivergence),
              HasSubstr("again without having waited"));
  EXPECT_THAT(finding("barrier.cluster.wait;", shape, Finding::Kind::kBarrierDivergence),
              HasSubstr("without having arrived"));
}

TEST_P(EngineCluster, ADeadlockNamesTheClustersBarrier) {
  run(R"(
  setp.eq.u32 %p1, %r5, 1;
  @%p1 bra skip;
  barrier.cluster.arrive; barrier.cluster.wait;
skip:
  bar.sync 0, 96;)",
      {.blocks = 2, .threads = 64, .cluster = 2});
  EXPECT_EQ(rig_->running(), 1);
  bool named = false;
  for (const Waiter& waiter : rig_->engine().waiters(16)) {
    named =
        named || waiter.waits_for == "the barrier of its cluster: 64 of 128 threads have arrived";
  }
  EXPECT_TRUE(named);
}

TEST(EngineClusterTime, AnotherBlocksMemoryIsFartherThanTheOwn) {
  auto time_of = [](const char* rank) {
    EngineRig rig(std::string(R"(
.shared .align 16 .b8 board[1024];
.visible .entry k()
{
  .reg .pred %p<4>; .reg .b32 %r<20>;
  mov.u32 %r1, board; mov.u32 %r2, 0;
  st.shared.u32 [%r1], 0;
  barrier.cluster.arrive; barrier.cluster.wait;
  mov.u32 %r5, %cluster_ctarank; xor.b32 %r5, %r5, )") +
                      rank + R"(;
  mapa.shared::cluster.u32 %r6, %r1, %r5;
again:
  ld.shared::cluster.u32 %r7, [%r6];
  add.u32 %r6, %r6, %r7; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 100;
  @%p1 bra again;
  barrier.cluster.arrive; barrier.cluster.wait;
  ret;
})",
                  {.timed = true});
    rig.launch("k", 0, {.blocks = 2, .threads = 32, .cluster = 2}, {});
    rig.run();
    EXPECT_EQ(rig.running(), 0);
    return rig.last_end();
  };
  // 100 dependent loads of 180 cycles instead of 29, at 1.755 GHz.
  double more_ns = static_cast<double>(time_of("1") - time_of("0")) / 1000;
  EXPECT_NEAR(more_ns, 100 * (180 - 29) / 1.755, 500);
}

}  // namespace
}  // namespace cb::sim
