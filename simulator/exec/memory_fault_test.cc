// Accesses that are refused, and what is said about them; and what the timing model is told.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "simulator/exec/memory_rig.h"

namespace cb::sim {
namespace {

constexpr uint64_t kBytes = 1000;

/// A load or store through %rd0 of 4 bytes a lane, on a rig with one buffer.
struct Probe {
  explicit Probe(const std::string& text = "ld.global.u32 %r1, [%rd0];", int rank = 0,
                 Allocation::Kind kind = Allocation::Kind::kSymmetric)
      : rig(text), buffer(rig.allocate(rank, kBytes, kind)) {
    if (text.find("%r1") != std::string::npos) rig.set_affine("%r1", 5, 0);
  }
  bool access(uint64_t base, int32_t stride, uint32_t mask = kAllLanes) {
    rig.set_mask(mask, false);
    rig.set_affine("%rd0", base, stride);
    return rig.run();
  }
  void expect(Finding::Kind kind, int lane) {
    ASSERT_TRUE(rig.fault);
    EXPECT_EQ(rig.fault->kind, kind) << rig.fault->detail;
    EXPECT_EQ(rig.fault->lane, lane);
  }
  MemoryRig rig;
  uint64_t buffer;
};

TEST(MemoryFault, BothEndsOfAnAllocationAreExact) {
  for (const char* text : {"ld.global.u32 %r1, [%rd0];", "st.global.u32 [%rd0], %r1;"}) {
    Probe probe(text);
    EXPECT_TRUE(probe.access(probe.buffer, 4));
    EXPECT_TRUE(probe.access(probe.buffer + kBytes - 128, 4));
    EXPECT_FALSE(probe.access(probe.buffer + kBytes - 124, 4));
    probe.expect(Finding::Kind::kOutOfBounds, 31);
    EXPECT_EQ(probe.rig.fault->address, probe.buffer + kBytes);
    EXPECT_FALSE(probe.access(probe.buffer - 4, 4));
    probe.expect(Finding::Kind::kOutOfBounds, 0);
    EXPECT_FALSE(probe.access(probe.buffer + 40, -4));
    probe.expect(Finding::Kind::kOutOfBounds, 11);
    // Lanes that are not active may point anywhere.
    EXPECT_TRUE(probe.access(probe.buffer + kBytes - 32, 4, 0xff));
    EXPECT_FALSE(probe.access(probe.buffer + kBytes - 32, 4, 0x1ff));
    probe.expect(Finding::Kind::kOutOfBounds, 8);
  }
}

TEST(MemoryFault, AnAccessMayNotStraddleTheEnd) {
  Probe probe("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd0];");
  EXPECT_TRUE(probe.access(probe.buffer + 976, 0));
  EXPECT_FALSE(probe.access(probe.buffer + 992, 0));
  probe.expect(Finding::Kind::kOutOfBounds, 0);
}

TEST(MemoryFault, SingleLanesOfAGather) {
  Probe probe;
  LaneValues addresses;
  for (uint64_t i = 0; i < kLanes; ++i) addresses.low[i] = probe.buffer + (i * 37 % 250) * 4;
  probe.rig.set("%rd0", addresses);
  EXPECT_TRUE(probe.rig.run());
  addresses.low[19] = probe.buffer + kBytes;
  addresses.low[25] = 0;
  probe.rig.set("%rd0", addresses);
  EXPECT_FALSE(probe.rig.run());
  probe.expect(Finding::Kind::kOutOfBounds, 19);
  probe.rig.set_mask(~(1u << 19), false);
  EXPECT_FALSE(probe.rig.run());
  probe.expect(Finding::Kind::kIllegalAddress, 25);
  probe.rig.set_mask(~(1u << 19 | 1u << 25), false);
  EXPECT_TRUE(probe.rig.run());
}

TEST(MemoryFault, AddressesThatWrapAround) {
  Probe probe;
  EXPECT_FALSE(probe.access(~uint64_t{3}, 0));
  probe.expect(Finding::Kind::kIllegalAddress, 0);
  EXPECT_FALSE(probe.access(~uint64_t{63}, 4));
  EXPECT_FALSE(probe.access(0, -4));
  EXPECT_FALSE(probe.access(0, 0));
  for (const char* text : {"ld.shared.u32 %r1, [%rd0];", "ld.local.u32 %r1, [%rd0];"}) {
    Probe offsets(text);
    EXPECT_FALSE(offsets.access(~uint64_t{3}, 4));
    offsets.expect(Finding::Kind::kOutOfBounds, 0);
    EXPECT_FALSE(offsets.access(4, -4));
    offsets.expect(Finding::Kind::kOutOfBounds, 2);
  }
}

TEST(MemoryFault, Misalignment) {
  Probe probe;
  EXPECT_FALSE(probe.access(probe.buffer + 2, 4));
  probe.expect(Finding::Kind::kMisaligned, 0);
  EXPECT_FALSE(probe.access(probe.buffer, 6));
  probe.expect(Finding::Kind::kMisaligned, 1);
  EXPECT_TRUE(probe.access(probe.buffer, 6, 1));
  Probe vector("st.global.v2.u32 [%rd0], {%r1, %r2};");
  vector.rig.set_affine("%r2", 5, 0);
  EXPECT_FALSE(vector.access(vector.buffer + 4, 0));
  vector.expect(Finding::Kind::kMisaligned, 0);
  Probe shared("ld.shared.u64 %rd1, [%rd0];");
  EXPECT_FALSE(shared.access(4, 8));
  shared.expect(Finding::Kind::kMisaligned, 0);
}

TEST(MemoryFault, FreedClosedAndForeignMemory) {
  Probe freed;
  EXPECT_TRUE(freed.access(freed.buffer, 4));
  freed.rig.memory().free(0, freed.buffer, Allocation::Kind::kSymmetric);
  EXPECT_FALSE(freed.access(freed.buffer, 4));
  freed.expect(Finding::Kind::kUseAfterFree, 0);

  Probe closed("ld.global.u32 %r1, [%rd0];", 0, Allocation::Kind::kPool);
  EXPECT_TRUE(closed.access(closed.buffer, 4));
  closed.rig.memory().set_open(closed.buffer, false);
  EXPECT_FALSE(closed.access(closed.buffer, 4));
  closed.expect(Finding::Kind::kEarlyAccess, 0);
  closed.rig.memory().set_open(closed.buffer, true);
  EXPECT_TRUE(closed.access(closed.buffer, 4));

  Probe foreign("ld.global.u32 %r1, [%rd0];", 1, Allocation::Kind::kDevice);
  EXPECT_FALSE(foreign.access(foreign.buffer, 4));
  foreign.expect(Finding::Kind::kNotPermitted, 0);
}

TEST(MemoryFault, ConstantsAreReadOnly) {
  for (bool store : {false, true}) {
    MemoryRig rig(store ? "st.global.u32 [%rd0], %r1;" : "ld.const.u32 %r1, [%rd0];");
    const Allocation* constant = rig.memory().allocate({.rank = 0,
                                                        .device = 0,
                                                        .bytes = 256,
                                                        .kind = Allocation::Kind::kModule,
                                                        .label = "table",
                                                        .constant = true,
                                                        .zeroed = true});
    rig.set_affine("%r1", 1, 0);
    rig.set_affine("%rd0", constant->base, 4);
    EXPECT_EQ(rig.run(), !store);
    EXPECT_TRUE(!store || rig.fault->kind == Finding::Kind::kReadOnly);
  }
}

TEST(MemoryFault, SharedAndLocalMemoryEnd) {
  Probe shared("st.shared.u32 [%rd0], %r1;");
  EXPECT_TRUE(shared.access(MemoryRig::kSharedBytes - 128, 4));
  EXPECT_FALSE(shared.access(MemoryRig::kSharedBytes - 124, 4));
  shared.expect(Finding::Kind::kOutOfBounds, 31);
  Probe local("st.local.u32 [%rd0], %r1;");
  EXPECT_TRUE(local.access(MemoryRig::kLocalLaneBytes - 4, 0));
  EXPECT_FALSE(local.access(MemoryRig::kLocalLaneBytes, 0));
  local.expect(Finding::Kind::kOutOfBounds, 0);
}

TEST(MemoryFault, GenericAddressesReachOnlyTheBlocksOwnScratchMemory) {
  Probe probe("st.u32 [%rd0], %r1;");
  MemoryRig& rig = probe.rig;
  EXPECT_TRUE(probe.access(rig.shared(), 4));
  EXPECT_TRUE(probe.access(rig.local(), MemoryRig::kLocalLaneBytes));
  EXPECT_FALSE(probe.access(rig.shared() + MemoryRig::kSharedBytes - 64, 4));
  probe.expect(Finding::Kind::kOutOfBounds, 16);
  EXPECT_FALSE(probe.access(rig.local() + kLanes * MemoryRig::kLocalLaneBytes, 0));
  EXPECT_FALSE(probe.access(kScratchBase + (uint64_t{1} << 30), 4));
  probe.expect(Finding::Kind::kIllegalAddress, 0);
  // Lanes in different kinds of memory.
  LaneValues addresses;
  for (uint64_t i = 0; i < kLanes; ++i) {
    addresses.low[i] = i % 3 == 0   ? rig.shared() + 4 * i
                       : i % 3 == 1 ? rig.local() + i * MemoryRig::kLocalLaneBytes
                                    : probe.buffer + 4 * i;
  }
  rig.set("%rd0", addresses);
  rig.set_mask(kAllLanes, true);
  EXPECT_TRUE(rig.run()) << rig.fault->detail;
}

TEST(MemoryFault, AStrongStoreMayGoToSeveralKindsOfMemory) {
  Probe probe("st.volatile.u32 [%rd0], %r1;");
  MemoryRig& rig = probe.rig;
  LaneValues addresses;
  for (uint64_t i = 0; i < kLanes; ++i) {
    addresses.low[i] = (i % 2 == 0 ? rig.shared() : probe.buffer) + 4 * i;
  }
  rig.set("%rd0", addresses);
  ASSERT_TRUE(rig.run());
  ASSERT_EQ(rig.posted.size(), 1u);
  EXPECT_EQ(rig.posted[0].mask, 0xaaaaaaaau);
  EXPECT_EQ(rig.wakes.size(), 1u);
  uint32_t word;
  std::memcpy(&word, reinterpret_cast<const void*>(rig.shared() + 8), 4);
  EXPECT_EQ(word, 5u);
}

TEST(MemoryFault, MulticastAddressesAreForMultimemOnly) {
  Probe probe;
  auto& memory = probe.rig.memory();
  uint64_t other = probe.rig.allocate(1, kBytes);
  const Allocation* multicast =
      memory.allocate_multicast({memory.find(probe.buffer), memory.find(other)});
  EXPECT_FALSE(probe.access(multicast->base, 4));
  probe.expect(Finding::Kind::kIllegalAddress, 0);
  Probe reverse("multimem.ld_reduce.relaxed.sys.global.add.u32 %r1, [%rd0];");
  EXPECT_FALSE(reverse.access(reverse.buffer, 4));
  reverse.expect(Finding::Kind::kIllegalAddress, 0);
}

TEST(MemoryFault, SitesAreNotSharedBetweenReadingAndWriting) {
  Probe probe("red.global.add.u32 [%rd0], %r1;");
  EXPECT_TRUE(probe.access(probe.buffer, 4));
  EXPECT_TRUE(probe.rig.site().writable);
  EXPECT_EQ(probe.rig.site().lo, probe.buffer);
}

MemoryAccess accessed(Probe& probe, uint64_t base, int32_t stride, uint32_t mask = kAllLanes) {
  probe.rig.context().timed = true;
  EXPECT_TRUE(probe.access(base, stride, mask));
  return probe.rig.context().access;
}

TEST(MemoryTiming, SectorsOfAffineAddresses) {
  Probe probe;
  EXPECT_EQ(accessed(probe, probe.buffer, 0).sectors, 1u);
  EXPECT_EQ(accessed(probe, probe.buffer, 4).sectors, 4u);
  EXPECT_EQ(accessed(probe, probe.buffer + 4, 4).sectors, 5u);
  EXPECT_EQ(accessed(probe, probe.buffer, 8).sectors, 8u);
  EXPECT_EQ(accessed(probe, probe.buffer, 24, 0xffff).sectors, 12u);
  EXPECT_EQ(accessed(probe, probe.buffer, 4, 0x80000001).sectors, 2u);
  EXPECT_EQ(accessed(probe, probe.buffer, 32, 0x3ff).sectors, 10u);
  MemoryAccess access = accessed(probe, probe.buffer + 124, -4);
  EXPECT_EQ(access.sectors, 4u);
  EXPECT_EQ(access.bytes, 128u);
  EXPECT_EQ(access.address, probe.buffer);
  EXPECT_EQ(access.end, probe.buffer + 128);
  EXPECT_EQ(access.kind, MemoryAccess::Kind::kLoad);
  EXPECT_FALSE(access.strong);
}

TEST(MemoryTiming, SectorsOfGathers) {
  Probe probe;
  probe.rig.context().timed = true;
  LaneValues addresses;
  for (uint64_t i = 0; i < kLanes; ++i) addresses.low[i] = probe.buffer + (i * 5 % 8) * 32;
  probe.rig.set("%rd0", addresses);
  ASSERT_TRUE(probe.rig.run());
  EXPECT_EQ(probe.rig.context().access.sectors, 8u);
}

TEST(MemoryTiming, DeviceOfTheMemory) {
  Probe probe("ld.acquire.sys.global.u32 %r1, [%rd0];", 2);
  MemoryAccess access = accessed(probe, probe.buffer, 4);
  EXPECT_EQ(access.device, 2);
  EXPECT_EQ(access.target, MemoryAccess::Target::kDevice);
  EXPECT_TRUE(access.strong);
}

TEST(MemoryTiming, BankConflicts) {
  Probe probe("ld.shared.u32 %r1, [%rd0];");
  EXPECT_EQ(accessed(probe, 0, 0).conflicts, 1u);
  EXPECT_EQ(accessed(probe, 0, 4).conflicts, 1u);
  EXPECT_EQ(accessed(probe, 0, 8).conflicts, 2u);
  EXPECT_EQ(accessed(probe, 0, 128).conflicts, 32u);
  EXPECT_EQ(accessed(probe, 0, 132).conflicts, 1u);
  EXPECT_EQ(accessed(probe, 0, 128, 0xff).conflicts, 8u);
  EXPECT_EQ(accessed(probe, 0, 4).target, MemoryAccess::Target::kShared);
  Probe wide("ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [%rd0];");
  EXPECT_EQ(accessed(wide, 0, 16).conflicts, 4u);
  EXPECT_EQ(accessed(wide, 0, 32).conflicts, 8u);
}

TEST(MemoryTiming, LocalMemoryIsInterleaved) {
  Probe probe("st.local.u32 [%rd0], %r1;");
  MemoryAccess access = accessed(probe, 16, 0);
  EXPECT_EQ(access.target, MemoryAccess::Target::kLocal);
  EXPECT_EQ(access.sectors, 4u);
}

struct Refusal {
  const char* text;
  const char* part;
};

TEST(MemoryRefusal, NamesWhatIsNotSupported) {
  constexpr Refusal kRefusals[] = {
      {"ld.global.frobnicate.u32 %r1, [%rd0];", ".frobnicate"},
      {"ld.relaxed.global.u32 %r1, [%rd0];", "scope"},
      {"ld.release.gpu.global.u32 %r1, [%rd0];", "release"},
      {"st.acquire.gpu.global.u32 [%rd0], %r1;", "acquire"},
      {"ld.global.u64 %r1, [%rd0];", "4 bytes for .u64"},
      {"ld.global.v2.u32 %r1, [%rd0];", "list of 2"},
      {"ld.global.v2.u32 {%r1, %h1}, [%rd0];", "different widths"},
      {"ld.global.f32 %rd1, [%rd0];", "8 bytes for .f32"},
      {"ld.global.u32 %r1, [%h0];", "address"},
      {"st.const.u32 [%rd0], %r1;", "constant memory"},
      {"st.global.nc.u32 [%rd0], %r1;", ".nc"},
      {"atom.global.inc.u64 %rd1, [%rd0], %rd2;", "atom.global.inc.u64"},
      {"atom.local.add.u32 %r1, [%rd0], %r2;", "global and shared"},
      {"red.global.exch.b32 [%rd0], %r2;", "red has no such"},
      {"cp.async.ca.shared.global [%r1], [%rd1], 12;", "a size of 12"},
      {"cp.async.cg.shared.global [%r1], [%rd1], 8;", "a size of 8"},
      {"cp.async.wait_group %r1;", "must be a constant"},
      {"cp.async.bulk.global.shared::cta.mbarrier::complete_tx::bytes [%rd1], [%r1], %r2, [%r3];",
       "cp.async.bulk"},
      {"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f16 [%rd1], [%r1], %r2;",
       "cp.reduce.async.bulk"},
      {"mbarrier.arrive.noComplete.shared.b64 %rd0, [%r1];", "mbarrier.arrive.noComplete"},
      {"mbarrier.arrive.shared::cluster.b64 %rd0, [%r1];", "has no state"},
      {"mapa.u32 %r1, %r2, %r3;", "64 bits"},
      {"getctarank.u32 %r1, %r2;", "64 bits"},
      {"cvta.global.u32 %r1, %r2;", "64 bits"},
      {"fence.acq_rel;", "fence.acq_rel"},
      {"shfl.idx.b32 %r1, %r2, %r3, %r4;", ".sync"},
      {"redux.sync.add.f32 %f1, %f2, -1;", "f32"},
      {"barrier.cluster.sync;", "sync"},
      {"barrier.cluster.wait.release;", "release"},
      {"setmaxnreg.inc.sync.aligned.u32 41;", "a multiple of 8"},
      {"setmaxnreg.inc.sync.aligned.u32 16;", "a multiple of 8"},
      {"mov.u32 %r1, %clock64;", "64 bits"},
      {"bar.arrive 1;", "threads"},
  };
  for (const Refusal& refusal : kRefusals) {
    MemoryRig rig(refusal.text);
    EXPECT_NE(rig.refusal().find(refusal.part), std::string::npos)
        << refusal.text << ": " << rig.refusal();
    EXPECT_EQ(rig.refusal().rfind("ptx:", 0), 0u) << rig.refusal();
  }
}

TEST(MemoryRefusal, AcceptsWhatCompilersWrite) {
  constexpr const char* kTexts[] = {
      "ld.global.nc.L1::no_allocate.L2::256B.v4.s32 {%r1, %r2, %r3, %r4}, [%rd0];",
      "ld.L1::no_allocate.L2::cache_hint.global.nc.v4.s32 {%r1, %r2, %r3, %r4}, [%rd0], %rd5;",
      "ld.global.cs.u16 %h1, [%rd0];",
      "ld.acquire.sys.L1::no_allocate.global.u32 %r1, [%rd0];",
      "st.mmio.relaxed.sys.global.b64 [%rd0], %rd1;",
      "st.weak.cs.v2.b64 [%rd0], {%rd1, %rd2};",
      "st.global.release.sys.v2.u64 [%rd0], {%rd1, %rd2};",
      "st.global.wt.v4.u32 [%rd0], {%r1, %r2, %r3, %r4};",
      "st.relaxed.sys.global.b128 [%rd0], %q1;",
      "st.global.L1::no_allocate.L2::cache_hint.v4.s32 [%rd0], {%r1, %r2, %r3, %r4}, %rd5;",
      "atom.acquire.cta.shared::cta.cas.b32 %r1, [%r0], %r2, %r3;",
      "atom.add.release.gpu.global.s32 %r1, [%rd0], %r2;",
      "atom.global.v2.f32.add {%f1, %f2}, [%rd0], {%f3, %f4};",
      "red.global.sys.add.noftz.bf16x2 [%rd0], %r1;",
      "red.global.v4.f32.add [%rd0], {%f1, %f2, %f3, %f4};",
      "multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.bf16x2 {%r1, %r2, %r3, %r4}, [%rd0];",
      "multimem.st.relaxed.sys.global.v4.f16x2 [%rd0], {%r1, %r2, %r3, %r4};",
      "multimem.red.release.sys.global.add.s32 [%rd0], %r1;",
      "fence.proxy.async.shared::cta;",
      "fence.mbarrier_init.release.cluster;",
      "membar.gl;",
      "prefetch.global.L2 [%rd0];",
      "prefetchu.L1 [%rd0];",
      "discard.global.L2 [%rd0], 128;",
      "createpolicy.fractional.L2::evict_first.b64 %rd1, 1.0;",
      "cvta.to.shared.u64 %rd1, %rd2;",
      "barrier.red.or.pred %p1, 1, 64, %p2;",
      "bar.red.popc.u32 %r1, 0, !%p2;",
      "barrier.cta.arrive 1, 128;",
      "griddepcontrol.launch_dependents;",
      "griddepcontrol.wait;",
      "barrier.cluster.arrive.relaxed.aligned;",
      "barrier.cluster.wait.acquire.aligned;",
      "mapa.shared::cluster.u32 %r1, shared_array, %r2;",
      "mapa.shared::cluster.u64 %rd1, %rd2, 3;",
      "getctarank.shared::cluster.u32 %r1, %r2;",
      "ld.acquire.cluster.shared::cluster.v4.u32 {%r1, %r2, %r3, %r4}, [%r0];",
      "st.release.cluster.shared::cluster.u64 [%r0+8], %rd1;",
      "red.relaxed.cluster.shared::cluster.add.u32 [%r0], %r1;",
      "elect.sync _|%p1, -1;",
  };
  for (const char* text : kTexts) {
    MemoryRig rig(text);
    EXPECT_EQ(rig.refusal(), "") << text;
  }
}

}  // namespace
}  // namespace cb::sim
