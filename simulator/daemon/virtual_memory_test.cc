// Virtual memory management, as requests: what is mapped where, and what is refused.

#include "simulator/daemon/virtual_memory.h"

#include <gtest/gtest.h>

#include "simulator/daemon/cuda_error.h"
#include "simulator/daemon/testing/daemon_rig.h"

namespace cb::sim {
namespace {

constexpr uint64_t kNoAccess = 0, kReadAccess = 1, kFullAccess = 3;

class VirtualMemoryRequests : public ::testing::Test {
 protected:
  VirtualMemoryRequests() : rig_({.world_size = 1}) { rig_.connect_hosts(); }
  RawHost& host() { return rig_.host(0); }
  int status(Op op, std::initializer_list<uint64_t> args) { return host().call(op, args).status; }
  uint64_t create(uint64_t bytes = kGranularity) {
    return host().call(Op::kMemCreate, {bytes, 0, kPosixDescriptor}).results[0];
  }
  uint64_t reserve(uint64_t bytes) { return host().call(Op::kMemReserve, {bytes, 0}).results[0]; }
  int read_status(uint64_t address) {
    return host().call(Op::kMemcpy, {0, address, 4, kNullStream, 0}, kCopyDstPageable).status;
  }
  DaemonRig rig_;
};

TEST_F(VirtualMemoryRequests, OneMemoryMayBeSeenAtTwoAddresses) {
  uint64_t handle = create();
  uint64_t first = reserve(2 * kGranularity), second = first + kGranularity;
  ASSERT_EQ(status(Op::kMemMap, {first, kGranularity, 0, handle}), kCudaSuccess);
  ASSERT_EQ(status(Op::kMemMap, {second, kGranularity, 0, handle}), kCudaSuccess);
  ASSERT_EQ(status(Op::kMemSetAccess, {first, 2 * kGranularity, 0, kFullAccess}), kCudaSuccess);
  host().write(first + 100, "word");
  EXPECT_EQ(host().read(second + 100, 4), "word");
}

TEST_F(VirtualMemoryRequests, NothingIsReachedBeforeAccessIsGivenAndAfterItIsTaken) {
  uint64_t handle = create();
  uint64_t base = reserve(kGranularity);
  EXPECT_EQ(read_status(base), kCudaInvalidValue);
  ASSERT_EQ(status(Op::kMemMap, {base, kGranularity, 0, handle}), kCudaSuccess);
  EXPECT_EQ(read_status(base), kCudaInvalidValue);
  ASSERT_EQ(status(Op::kMemSetAccess, {base, kGranularity, 0, kReadAccess}), kCudaSuccess);
  EXPECT_EQ(read_status(base), kCudaSuccess);
  EXPECT_EQ(host().call(Op::kMemGetAccess, {base, 0}).results[0], kReadAccess);
  ASSERT_EQ(status(Op::kMemSetAccess, {base, kGranularity, 0, kNoAccess}), kCudaSuccess);
  EXPECT_EQ(read_status(base), kCudaInvalidValue);
  ASSERT_EQ(status(Op::kMemUnmap, {base, kGranularity}), kCudaSuccess);
  EXPECT_EQ(read_status(base), kCudaInvalidValue);
}

TEST_F(VirtualMemoryRequests, MappingsLieInsideReservationsAndDoNotOverlap) {
  uint64_t handle = create();
  uint64_t base = reserve(kGranularity);
  EXPECT_EQ(status(Op::kMemMap, {base + 4096, kGranularity, 0, handle}), kCudaInvalidValue);
  EXPECT_EQ(status(Op::kMemMap, {base, 2 * kGranularity, 0, handle}), kCudaInvalidValue);
  EXPECT_EQ(status(Op::kMemMap, {base, kGranularity, kGranularity, handle}), kCudaInvalidValue);
  EXPECT_EQ(status(Op::kMemMap, {~uint64_t{0}, kGranularity, 0, handle}), kCudaInvalidValue);
  EXPECT_EQ(status(Op::kMemMap, {base, ~uint64_t{0} - 4095, 0, handle}), kCudaInvalidValue);
  EXPECT_EQ(status(Op::kMemMap, {base, kGranularity, 0, handle + 1}), kCudaInvalidValue);
  ASSERT_EQ(status(Op::kMemMap, {base, kGranularity, 0, handle}), kCudaSuccess);
  EXPECT_EQ(status(Op::kMemMap, {base, kGranularity, 0, handle}), kCudaInvalidValue);
}

TEST_F(VirtualMemoryRequests, MemoryLivesAsLongAsItIsMapped) {
  uint64_t handle = create();
  uint64_t base = reserve(kGranularity);
  uint64_t free_bytes = host().call(Op::kMemInfo, {0}).results[0];
  ASSERT_EQ(status(Op::kMemMap, {base, kGranularity, 0, handle}), kCudaSuccess);
  ASSERT_EQ(status(Op::kMemRelease, {handle}), kCudaSuccess);
  EXPECT_EQ(status(Op::kMemRelease, {handle}), kCudaInvalidValue);
  EXPECT_EQ(host().call(Op::kMemInfo, {0}).results[0], free_bytes);
  EXPECT_EQ(status(Op::kMemUnreserve, {base, kGranularity}), kCudaInvalidValue);
  ASSERT_EQ(status(Op::kMemUnmap, {base, kGranularity}), kCudaSuccess);
  EXPECT_EQ(host().call(Op::kMemInfo, {0}).results[0], free_bytes + kGranularity);
  EXPECT_EQ(status(Op::kMemUnreserve, {base, kGranularity}), kCudaSuccess);
  EXPECT_EQ(status(Op::kMemUnreserve, {base, kGranularity}), kCudaInvalidValue);
}

TEST_F(VirtualMemoryRequests, SizesThatAreNoGranularityAreRefused) {
  EXPECT_EQ(status(Op::kMemCreate, {0, 0, 0}), kCudaInvalidValue);
  EXPECT_EQ(status(Op::kMemCreate, {kGranularity - 1, 0, 0}), kCudaInvalidValue);
  EXPECT_EQ(status(Op::kMemCreate, {uint64_t{1} << 62, 0, 0}), kCudaMemoryAllocation);
  EXPECT_EQ(status(Op::kMemReserve, {0, 0}), kCudaInvalidValue);
  EXPECT_EQ(status(Op::kMemReserve, {4096, 3}), kCudaInvalidValue);
}

TEST_F(VirtualMemoryRequests, ADescriptorStandsForWhatWasExportedOnly) {
  EXPECT_EQ(status(Op::kMemImport, {}), kCudaInvalidValue) << "no descriptor came along";
  uint64_t pool = host().call(Op::kPoolCreate, {0, kPosixDescriptor, 0}).results[0];
  EXPECT_EQ(status(Op::kPoolExport, {pool}), kCudaSuccess);
  EXPECT_EQ(host().fds().size(), 1u);
  EXPECT_EQ(status(Op::kMemExport, {pool + 1000}), kCudaInvalidValue);
  uint64_t secret = host().call(Op::kMemCreate, {kGranularity, 0, 0}).results[0];
  EXPECT_EQ(status(Op::kMemExport, {secret}), kCudaInvalidValue) << "made without a handle type";
}

}  // namespace
}  // namespace cb::sim
