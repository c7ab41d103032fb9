#include "simulator/daemon/memory_pools.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "simulator/daemon/cuda_error.h"
#include "simulator/daemon/testing/daemon_rig.h"

namespace cb::sim {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kDeviceBytes = 256 * kMiB;

struct Pools : ::testing::Test {
  AddressSpace memory{2, 2, kDeviceBytes, MemoryQuota{}};
  MemoryPools pools{memory};
  Stream stream, other;

  uint64_t make(MemoryPool& pool, uint64_t bytes) {
    MemoryPools::Made made = pools.allocate(pool, stream, bytes);
    return made.allocation == nullptr ? 0 : made.allocation->base;
  }
  void free_at_once(int rank, uint64_t base) {
    ASSERT_TRUE(pools.begin_free(rank, base, &stream, nullptr));
    pools.end_free(rank, base);
  }
};

TEST_F(Pools, APoolTakesPiecesOfItsDeviceAndGivesThemBack) {
  MemoryPool& pool = *pools.create(0, 0, 0, 0);
  uint64_t base = make(pool, kMiB);
  EXPECT_EQ(pool.reserved, kPoolPieceBytes);
  EXPECT_EQ(memory.device_bytes_free(0), kDeviceBytes - kPoolPieceBytes);
  pools.trim(pool, 0);
  EXPECT_EQ(pool.reserved, kPoolPieceBytes) << "memory is in use";
  free_at_once(0, base);
  pools.release_idle(0);
  EXPECT_EQ(memory.device_bytes_free(0), kDeviceBytes);
}

TEST_F(Pools, AThresholdKeepsMemory) {
  MemoryPool& pool = *pools.create(0, 0, 0, 0);
  pool.threshold = kPoolPieceBytes;
  free_at_once(0, make(pool, 3 * kPoolPieceBytes));
  pools.release_idle(0);
  EXPECT_EQ(pool.reserved, kPoolPieceBytes);
}

TEST_F(Pools, OnlyItsOwnStreamReusesMemoryWhoseFreeIsUnderWay) {
  MemoryPool& pool = *pools.create(0, 0, 0, 0);
  uint64_t base = make(pool, 2 * kPoolPieceBytes);
  ASSERT_TRUE(pools.begin_free(0, base, &stream, nullptr));
  EXPECT_FALSE(pools.allocate(pool, stream, kPoolPieceBytes).grew);
  EXPECT_TRUE(pools.allocate(pool, other, 2 * kPoolPieceBytes).grew);
}

TEST_F(Pools, WhenMemoryIsShortAnAllocationWaitsForFreesOfOtherStreams) {
  MemoryPool& pool = *pools.create(0, 0, 0, 0);
  uint64_t base = make(pool, kDeviceBytes);
  auto free_work = std::make_shared<Work>();
  ASSERT_TRUE(pools.begin_free(0, base, &stream, free_work));
  MemoryPools::Made made = pools.allocate(pool, other, kMiB);
  ASSERT_NE(made.allocation, nullptr);
  EXPECT_THAT(made.after, ::testing::ElementsAre(free_work));
}

TEST_F(Pools, MemoryEndsAtTheDeviceAndAtThePoolsBound) {
  MemoryPool& pool = *pools.create(0, 0, 0, 0);
  EXPECT_EQ(make(pool, kDeviceBytes + 1), 0u);
  EXPECT_NE(make(pool, kDeviceBytes), 0u);
  EXPECT_EQ(make(pool, 1), 0u);
  MemoryPool& bounded = *pools.create(1, 1, 0, kMiB);
  EXPECT_EQ(make(bounded, kMiB + 1), 0u);
  EXPECT_NE(make(bounded, kMiB), 0u);
}

TEST_F(Pools, AFreeIsAcceptedOnceAndFromItsOwnerOnly) {
  MemoryPool& pool = *pools.create(0, 0, 0, 0);
  uint64_t base = make(pool, kMiB);
  EXPECT_FALSE(pools.begin_free(1, base, &stream, nullptr));
  EXPECT_FALSE(pools.begin_free(0, base + 512, &stream, nullptr));
  EXPECT_TRUE(pools.begin_free(0, base, &stream, nullptr));
  EXPECT_FALSE(pools.begin_free(0, base, &stream, nullptr));
}

TEST_F(Pools, MemoryMayBeTouchedAfterTheTurnOfItsAllocation) {
  MemoryPool& pool = *pools.create(0, 0, 0, 0);
  uint64_t base = make(pool, 64);
  EXPECT_EQ(memory.check(base, 4, {0, 0}, true).fault, AccessFault::kUnordered);
  memory.set_pending(base, false);
  EXPECT_EQ(memory.check(base, 4, {0, 0}, true).fault, AccessFault::kNone);
  free_at_once(0, base);
  EXPECT_EQ(memory.check(base, 4, {0, 0}, true).fault, AccessFault::kUseAfterFree);
}

TEST_F(Pools, OtherDevicesAndProcessesNeedAccess) {
  MemoryPool& pool = *pools.create(0, 0, 1, 0);
  uint64_t base = make(pool, 64);
  memory.set_pending(base, false);
  auto fault = [&](int rank, int device, bool write) {
    return memory.check(base, 4, {rank, device}, write).fault;
  };
  EXPECT_EQ(fault(0, 1, false), AccessFault::kNotPermitted);
  pools.set_access(pool, 1, true, false);
  EXPECT_EQ(fault(0, 1, false), AccessFault::kNone);
  EXPECT_EQ(fault(0, 1, true), AccessFault::kNotPermitted);

  MemoryPool& imported = *pools.import(1, pool);
  EXPECT_EQ(fault(1, 0, false), AccessFault::kNotPermitted) << "the pointer is not imported";
  EXPECT_TRUE(pools.import_pointer(imported, base));
  EXPECT_FALSE(pools.import_pointer(imported, base));
  EXPECT_EQ(fault(1, 0, true), AccessFault::kNone);
  EXPECT_EQ(fault(1, 1, false), AccessFault::kNotPermitted);
  pools.set_access(imported, 1, true, true);
  EXPECT_EQ(fault(1, 1, true), AccessFault::kNone);
  free_at_once(1, base);
  EXPECT_EQ(fault(1, 0, false), AccessFault::kNotPermitted);
  EXPECT_EQ(fault(0, 0, false), AccessFault::kNone);
}

TEST_F(Pools, AProcessThatEndsGivesEverythingBack) {
  MemoryPool& pool = *pools.create(0, 0, 1, 0);
  uint64_t base = make(pool, 64);
  MemoryPool& imported = *pools.import(1, pool);
  EXPECT_TRUE(pools.import_pointer(imported, base));
  pools.release_rank(0, -1);
  EXPECT_EQ(memory.device_bytes_free(0), kDeviceBytes);
  EXPECT_FALSE(pools.contains(base));
  EXPECT_FALSE(pools.begin_free(1, base, &stream, nullptr));
  pools.release_rank(1, -1);
}

TEST_F(Pools, ADestroyedPoolLivesUntilItsMemoryIsFreed) {
  MemoryPool& pool = *pools.create(0, 0, 0, 0);
  uint64_t id = pool.id;
  uint64_t base = make(pool, 64);
  pools.destroy(pool);
  EXPECT_EQ(pools.find(0, id), nullptr);
  EXPECT_NE(pools.find_any(id), nullptr);
  free_at_once(0, base);
  EXPECT_EQ(pools.find_any(id), nullptr);
  EXPECT_EQ(memory.device_bytes_free(0), kDeviceBytes);
}

TEST(PoolRequests, AnAccessThatNothingOrdersAfterTheAllocationIsAFinding) {
  DaemonRig rig({.world_size = 1});
  rig.connect_hosts();
  RawHost& host = rig.host(0);
  uint64_t pool = host.call(Op::kPoolDefault, {0}).results[0];
  uint64_t word = host.malloc(8);
  host.write(word, std::string(8, '\0'));
  host.post(Op::kStreamCreate, {100, 1, 0, 0});
  host.post(Op::kStreamCreate, {101, 1, 0, 0});
  // Stream 100 stands still, so that its allocation has not come when stream 101 writes.
  StreamMemoryOp wait{StreamMemoryOp::kWaitEqual, 0, word, 1};
  std::string payload(reinterpret_cast<char*>(&wait), sizeof wait);
  EXPECT_EQ(host.call(Op::kStreamMemory, {100, 0}, 0, payload).status, kCudaSuccess);
  Reply made = host.call(Op::kMallocAsync, {64, 100, 0, pool});
  ASSERT_EQ(made.status, kCudaSuccess);
  EXPECT_EQ(host.call(Op::kMemset, {made.results[0], 0, 1, 64, 1, 64, 101, 0}, kCopyAsync).status,
            kCudaSuccess);
  EXPECT_EQ(host.call(Op::kStreamSync, {101, 0}).status, kCudaIllegalAddress);
  EXPECT_THAT(dump_json(rig.rank(0).report()["findings"]),
              ::testing::HasSubstr("nothing orders the access after the allocation"));
}

TEST(PoolRequests, AnotherProcesssPoolsAreUnknown) {
  DaemonRig rig({.world_size = 2});
  rig.connect_hosts();
  uint64_t pool = 0;
  rig.each([&](int rank) {
    if (rank == 0) pool = rig.host(0).call(Op::kPoolCreate, {0, 1, 0}).results[0];
    RawHost& host = rig.host(rank);
    host.call(Op::kBarrier);
    if (rank == 0) {
      host.call(Op::kBarrier);
      return;
    }
    EXPECT_EQ(host.call(Op::kMallocAsync, {64, kNullStream, 1, pool}).status, kCudaInvalidValue);
    EXPECT_EQ(host.call(Op::kPoolGet, {pool, 4}).status, kCudaInvalidValue);
    EXPECT_EQ(host.call(Op::kPoolDestroy, {pool}).status, kCudaInvalidValue);
    EXPECT_EQ(host.call(Op::kPoolExport, {pool}).status, kCudaInvalidValue);
    EXPECT_EQ(host.call(Op::kPoolImport).status, kCudaInvalidValue);
    host.call(Op::kBarrier);
  });
}

}  // namespace
}  // namespace cb::sim
