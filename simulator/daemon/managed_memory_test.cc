#include <gtest/gtest.h>

#include "simulator/daemon/cuda_error.h"
#include "simulator/daemon/testing/daemon_rig.h"
#include "simulator/memory/address_space.h"

namespace cb::sim {
namespace {

constexpr uint64_t kBytes = 4096;
constexpr uint64_t kToHost = ~uint64_t{0};

class Managed : public ::testing::Test {
 protected:
  Managed() : rig_({.world_size = 1}) { rig_.connect_hosts(); }
  RawHost& host() { return rig_.host(0); }
  uint64_t make() { return host().call(Op::kHostAlloc, {kBytes, 0, 0, 1}).results[0]; }
  int prefetch(uint64_t address, uint64_t bytes, uint64_t target) {
    return host().call(Op::kManagedPrefetch, {address, bytes, kNullStream, 0, target}).status;
  }
  uint64_t prefetch_ns(uint64_t address, uint64_t target) {
    uint64_t start = host().now_ns();
    EXPECT_EQ(prefetch(address, kBytes, target), kCudaSuccess);
    EXPECT_EQ(host().call(Op::kStreamSync, {kNullStream, 0}).status, kCudaSuccess);
    return host().now_ns() - start;
  }
  DaemonRig rig_;
};

TEST_F(Managed, AMoveTakesTimeAndStayingDoesNot) {
  uint64_t memory = make();
  uint64_t moved = prefetch_ns(memory, 0);
  uint64_t stayed = prefetch_ns(memory, 0);
  uint64_t moved_back = prefetch_ns(memory, kToHost);
  EXPECT_GE(moved, stayed + 10'000) << "the estimate of a migration is 10 us";
  EXPECT_GE(moved_back, stayed + 10'000);
}

TEST_F(Managed, OnlyManagedMemoryOfTheProcessIsPrefetched) {
  uint64_t memory = make();
  uint64_t pinned = host().call(Op::kHostAlloc, {kBytes, 0, 0}).results[0];
  EXPECT_EQ(prefetch(pinned, kBytes, 0), kCudaInvalidValue);
  EXPECT_EQ(prefetch(host().malloc(kBytes), kBytes, 0), kCudaInvalidValue);
  EXPECT_EQ(prefetch(memory, kBytes + 1, 0), kCudaInvalidValue);
  EXPECT_EQ(prefetch(memory + 1, ~uint64_t{0}, 0), kCudaInvalidValue);
  EXPECT_EQ(prefetch(memory, 0, 0), kCudaInvalidValue);
  EXPECT_EQ(prefetch(memory, kBytes, 1000), kCudaInvalidDevice);
  EXPECT_EQ(prefetch(4096, kBytes, 0), kCudaInvalidValue);
}

TEST_F(Managed, APrefetchOfMemoryThatIsFreedMeanwhileEnds) {
  uint64_t memory = make();
  EXPECT_EQ(prefetch(memory, kBytes, 0), kCudaSuccess);
  EXPECT_EQ(host().call(Op::kHostFree, {memory}).status, kCudaSuccess);
  EXPECT_EQ(prefetch(memory, kBytes, 0), kCudaInvalidValue);
  EXPECT_EQ(host().call(Op::kStreamSync, {kNullStream, 0}).status, kCudaSuccess);
}

TEST(ManagedPlace, WhereItIsDecidesWhereAccessesGo) {
  AddressSpace memory(1, 2, uint64_t{1} << 30, MemoryQuota{});
  UniqueFd fd;
  uint64_t base = memory.allocate_pinned(0, 0, kBytes, fd)->base;
  memory.set_managed(base);
  EXPECT_EQ(memory.device_of(base), -1);
  memory.set_resident(base, 1);
  EXPECT_EQ(memory.device_of(base), 1);
  EXPECT_EQ(memory.check(base, 4, {0, 0}, true).fault, AccessFault::kNone);
  memory.set_resident(base, -1);
  EXPECT_EQ(memory.device_of(base), -1);
  EXPECT_TRUE(memory.free(0, base, Allocation::Kind::kPinned));
}

}  // namespace
}  // namespace cb::sim
