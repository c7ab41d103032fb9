#include "simulator/memory/address_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>

#include "simulator/memory/pages.h"

namespace cb::sim {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kDeviceBytes = uint64_t{1} << 30;
constexpr Accessor kOwner{.rank = 0, .device = 0};
constexpr Accessor kOther{.rank = 1, .device = 1};

class AddressSpaceTest : public ::testing::Test {
 protected:
  const Allocation& allocate(uint64_t bytes, int rank = 0,
                             Allocation::Kind kind = Allocation::Kind::kDevice) {
    const Allocation* made =
        space.allocate({.rank = rank, .device = rank, .bytes = bytes, .kind = kind});
    EXPECT_NE(made, nullptr);
    return *made;
  }
  AccessFault fault(uint64_t address, uint64_t bytes, Accessor who = kOwner, bool write = false) {
    return space.check(address, bytes, who, write).fault;
  }

  AddressSpace space{2, 2, kDeviceBytes, {.host_bytes = 1 << 20, .allocations = 100}};
};

TEST_F(AddressSpaceTest, BoundsAreExact) {
  const Allocation& a = allocate(1000);
  EXPECT_EQ(a.base % 512, 0u);
  EXPECT_EQ(fault(a.base, 1000), AccessFault::kNone);
  EXPECT_EQ(fault(a.base + 999, 1), AccessFault::kNone);
  EXPECT_EQ(fault(a.base + 999, 2), AccessFault::kOutOfBounds);
  EXPECT_EQ(fault(a.base + 1000, 1), AccessFault::kOutOfBounds);
  EXPECT_EQ(fault(a.base - 4, 4), AccessFault::kOutOfBounds);
  EXPECT_EQ(fault(a.base - 4, 8), AccessFault::kOutOfBounds);
  Access access = space.check(a.base + 8, 4, kOwner, true);
  EXPECT_EQ(access.lo, a.base);
  EXPECT_EQ(access.hi, a.base + 1000);
}

TEST_F(AddressSpaceTest, AddressesFromNowhereAreUnmapped) {
  allocate(64);
  for (uint64_t address :
       {uint64_t{0}, uint64_t{0x400000}, ~uint64_t{0} - 3, kWindowBase - 4,
        kWindowBase + (uint64_t{1} << 36), kScratchBase + 4096, kWindowBase + kWindowBytes}) {
    EXPECT_EQ(fault(address, 8), AccessFault::kUnmapped) << std::hex << address;
  }
}

TEST_F(AddressSpaceTest, NeighboursHaveAGapBetweenThem) {
  const Allocation& a = allocate(512);
  const Allocation& b = allocate(512);
  EXPECT_GE(b.base, a.end() + 4096);
  EXPECT_EQ(fault(a.base, b.end() - a.base), AccessFault::kOutOfBounds);
}

TEST_F(AddressSpaceTest, FreedMemoryIsKnownAndItsAddressIsNotReused) {
  uint64_t base = allocate(4096).base;
  uint32_t epoch = space.epoch();
  EXPECT_TRUE(space.free(0, base, Allocation::Kind::kDevice));
  EXPECT_NE(space.epoch(), epoch);
  EXPECT_EQ(fault(base, 4), AccessFault::kUseAfterFree);
  EXPECT_FALSE(space.free(0, base, Allocation::Kind::kDevice));
  EXPECT_NE(allocate(4096).base, base);
  EXPECT_EQ(space.device_bytes_free(0), kDeviceBytes - 4096);
}

TEST_F(AddressSpaceTest, OnlyTheOwnerFreesAndOnlyWithTheRightBase) {
  const Allocation& a = allocate(4096);
  EXPECT_FALSE(space.free(1, a.base, Allocation::Kind::kDevice));
  EXPECT_FALSE(space.free(0, a.base + 512, Allocation::Kind::kDevice));
  EXPECT_FALSE(space.free(0, a.base, Allocation::Kind::kSymmetric));
}

TEST_F(AddressSpaceTest, OtherRanksNeedAGrant) {
  const Allocation& a = allocate(64);
  EXPECT_EQ(fault(a.base, 4, kOther), AccessFault::kNotPermitted);
  space.grant(a.base, 1);
  EXPECT_EQ(fault(a.base, 4, kOther), AccessFault::kNone);
  uint32_t epoch = space.epoch();
  space.revoke(a.base, 1);
  EXPECT_NE(space.epoch(), epoch);
  EXPECT_EQ(fault(a.base, 4, kOther), AccessFault::kNotPermitted);
}

TEST_F(AddressSpaceTest, NobodyReachesMemoryOfAnotherNode) {
  const Allocation& a = allocate(64, 0, Allocation::Kind::kSymmetric);
  space.grant_everyone(a.base);
  EXPECT_EQ(fault(a.base, 4, kOther), AccessFault::kNone);
  uint32_t epoch = space.epoch();
  space.set_devices_per_node(1);
  EXPECT_NE(space.epoch(), epoch);
  EXPECT_EQ(fault(a.base, 4, kOther), AccessFault::kNotPermitted);
  EXPECT_EQ(fault(a.base, 4), AccessFault::kNone);
}

TEST_F(AddressSpaceTest, AnotherDeviceOfTheSameProcessNeedsPeerAccess) {
  const Allocation& a = allocate(64);
  Accessor from_device_1{.rank = 0, .device = 1};
  EXPECT_EQ(fault(a.base, 4, from_device_1), AccessFault::kNotPermitted);
  space.set_peer_access(0, 1, 0, true);
  EXPECT_EQ(fault(a.base, 4, from_device_1), AccessFault::kNone);
  space.set_peer_access(0, 1, 0, false);
  EXPECT_EQ(fault(a.base, 4, from_device_1), AccessFault::kNotPermitted);
}

TEST_F(AddressSpaceTest, ClosedAndConstantMemory) {
  const Allocation& pool = allocate(64, 0, Allocation::Kind::kPool);
  space.set_open(pool.base, false);
  EXPECT_EQ(fault(pool.base, 4), AccessFault::kClosed);
  space.set_open(pool.base, true);
  EXPECT_EQ(fault(pool.base, 4), AccessFault::kNone);
  const Allocation* constant = space.allocate({.bytes = 64, .constant = true});
  EXPECT_EQ(fault(constant->base, 4), AccessFault::kNone);
  EXPECT_EQ(fault(constant->base, 4, kOwner, true), AccessFault::kReadOnly);
}

TEST_F(AddressSpaceTest, MulticastAddressesAreForMultimemOnly) {
  const Allocation& a = allocate(64, 0, Allocation::Kind::kSymmetric);
  const Allocation& b = allocate(64, 1, Allocation::Kind::kSymmetric);
  const Allocation* all = space.allocate_multicast({&a, &b});
  EXPECT_EQ(fault(all->base, 4), AccessFault::kMulticast);
  EXPECT_EQ(space.check(a.base, 4, kOwner, false, true).fault, AccessFault::kMulticast);
  EXPECT_EQ(space.check(all->base, 4, kOwner, false, true).fault, AccessFault::kNotPermitted);
  space.grant_everyone(a.base);
  space.grant_everyone(b.base);
  EXPECT_EQ(space.check(all->base + 60, 4, kOwner, true, true).fault, AccessFault::kNone);
  EXPECT_EQ(space.check(all->base + 60, 8, kOwner, true, true).fault, AccessFault::kOutOfBounds);
}

TEST_F(AddressSpaceTest, PinnedMemoryIsSharedThroughItsDescriptor) {
  UniqueFd fd;
  const Allocation* pinned = space.allocate_pinned(0, 0, 100, fd);
  ASSERT_NE(pinned, nullptr);
  void* other = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  ASSERT_NE(other, MAP_FAILED);
  std::memcpy(other, "hello", 6);
  EXPECT_STREQ(reinterpret_cast<const char*>(pinned->base), "hello");
  EXPECT_EQ(fault(pinned->base + 99, 1, {.rank = 0, .device = 1}), AccessFault::kNone);
  EXPECT_EQ(fault(pinned->base, 1, kOther), AccessFault::kNotPermitted);
  EXPECT_EQ(space.allocate_pinned(0, 0, 2 << 20, fd), nullptr) << "over the quota";
  EXPECT_TRUE(space.free(0, pinned->base, Allocation::Kind::kPinned));
  munmap(other, 4096);
}

TEST_F(AddressSpaceTest, CapacityAndCountAreQuotas) {
  EXPECT_EQ(space.allocate({.bytes = kDeviceBytes + 1}), nullptr);
  for (int i = 0; i < 100; ++i) EXPECT_NE(space.allocate({.bytes = 1}), nullptr);
  EXPECT_EQ(space.allocate({.bytes = 1}), nullptr);
  EXPECT_NE(space.allocate({.rank = 1, .device = 1, .bytes = 1}), nullptr);
}

TEST_F(AddressSpaceTest, AProcessThatEndsLeavesTheGradersBuffers) {
  uint64_t own = allocate(64).base;
  uint64_t pool = allocate(64, 0, Allocation::Kind::kPool).base;
  space.free_all(0, -1);
  EXPECT_EQ(fault(own, 4), AccessFault::kUseAfterFree);
  EXPECT_EQ(fault(pool, 4), AccessFault::kNone);
}

const unsigned char* bytes_at(uint64_t address) {
  return reinterpret_cast<const unsigned char*>(address);
}

bool is_zero(uint64_t address, uint64_t bytes) {
  const unsigned char* first = bytes_at(address);
  return std::all_of(first, first + bytes, [](unsigned char byte) { return byte == 0; });
}

size_t count_mappings() {
  std::ifstream maps("/proc/self/maps");
  size_t lines = 0;
  for (std::string line; std::getline(maps, line);) ++lines;
  return lines;
}

TEST_F(AddressSpaceTest, FreshMemoryIsGarbageUnlessAskedOtherwise) {
  const Allocation& small = allocate(1 << 20);
  EXPECT_FALSE(is_zero(small.base + (1 << 19), 8));
  const Allocation& large = allocate(3 << 20);
  EXPECT_FALSE(is_zero(large.base, 8));
  EXPECT_FALSE(is_zero(large.end() - 8, 8));
  EXPECT_TRUE(is_zero(large.base + (1 << 20), 1 << 20)) << "untouched pages cost nothing";
  const Allocation* zeroed = space.allocate({.bytes = 100'000, .zeroed = true});
  EXPECT_TRUE(is_zero(zeroed->base, 100'000));
}

TEST_F(AddressSpaceTest, FreeingReturnsThePages) {
  constexpr uint64_t kBytes = 64 << 20;
  const Allocation& a = allocate(kBytes);
  std::memset(reinterpret_cast<void*>(a.base), 1, kBytes);
  uint64_t full = space.backed_bytes();
  space.free(0, a.base, Allocation::Kind::kDevice);
  EXPECT_LT(space.backed_bytes() + kBytes / 2, full);
  EXPECT_TRUE(is_zero(a.base, kBytes));
}

TEST_F(AddressSpaceTest, SmallAllocationsReturnTheirPagesAndLeaveTheirNeighboursAlone) {
  const Allocation& before = allocate(100);
  const Allocation& small = allocate(100);
  const Allocation& after = allocate(100);
  for (const Allocation* a : {&before, &small, &after}) {
    std::memset(reinterpret_cast<void*>(a->base), 9, a->bytes);
  }
  space.free(0, small.base, Allocation::Kind::kDevice);
  EXPECT_TRUE(is_zero(small.base, small.bytes));
  EXPECT_EQ(*bytes_at(before.end() - 1), 9);
  EXPECT_EQ(*bytes_at(after.base), 9);
  uint64_t resident = space.backed_bytes();
  for (int i = 0; i < 20'000; ++i) {
    space.free(0, allocate(100).base, Allocation::Kind::kDevice);
  }
  EXPECT_LT(space.backed_bytes(), resident + (40 << 20)) << "20 000 pages are 80 MB";
}

TEST_F(AddressSpaceTest, LivesThatEndLeaveNoMappingsBehind) {
  allocate(64);
  size_t before = count_mappings();
  for (int i = 0; i < 200; ++i) {
    UniqueFd fd;
    uint64_t pinned = space.allocate_pinned(0, 0, 5000, fd)->base;
    const Allocation& huge = allocate(8 << 20);
    std::memset(reinterpret_cast<void*>(huge.base), 1, 4096);
    EXPECT_TRUE(space.free(0, pinned, Allocation::Kind::kPinned));
    EXPECT_TRUE(space.free(0, huge.base, Allocation::Kind::kDevice));
  }
  EXPECT_LE(count_mappings(), before + 10);
}

TEST(AddressSpaceLimitsTest, AddressesAreUsedAgainWhenTheArenaIsUsedUp) {
  constexpr uint64_t kBytes = kArenaBytes / 4;
  AddressSpace space(1, 1, kArenaBytes, {});
  std::vector<uint64_t> bases;
  for (int i = 0; i < 10; ++i) {
    const Allocation* made = space.allocate({.bytes = kBytes - i * 4096, .zeroed = true});
    ASSERT_NE(made, nullptr) << i;
    EXPECT_TRUE(is_zero(made->base, 4096));
    std::memset(reinterpret_cast<void*>(made->base), 7, 4096);
    bases.push_back(made->base);
    EXPECT_EQ(space.check(made->base, made->bytes, kOwner, true).fault, AccessFault::kNone);
    EXPECT_EQ(space.check(made->base, made->bytes + 1, kOwner, true).fault,
              AccessFault::kOutOfBounds);
    space.free(0, made->base, Allocation::Kind::kDevice);
  }
  EXPECT_EQ(bases[4], bases[0]) << "the one that died first";
}

TEST(AddressSpaceLimitsTest, TouchedMemoryIsAQuota) {
  uint64_t now = ResidentMeter().bytes();
  ASSERT_GT(now, 0u);
  AddressSpace space(1, 1, kArenaBytes, {.backed_bytes = now + (32 << 20)});
  const Allocation* a = space.allocate({.bytes = 128 << 20});
  ASSERT_NE(a, nullptr) << "untouched";
  EXPECT_FALSE(space.over_quota());
  std::memset(reinterpret_cast<void*>(a->base), 1, 64 << 20);
  EXPECT_TRUE(space.over_quota());
  EXPECT_EQ(space.allocate({.bytes = 128 << 20}), nullptr);
  space.free(0, a->base, Allocation::Kind::kDevice);
  EXPECT_NE(space.allocate({.bytes = 64}), nullptr) << "there is room again";
}

TEST_F(AddressSpaceTest, AGrantEndsWithTheMemory) {
  uint64_t base = allocate(64).base;
  space.grant(base, 1);
  space.free(0, base, Allocation::Kind::kDevice);
  EXPECT_FALSE(space.granted(base, 1));
  space.grant(base, 1);
  EXPECT_FALSE(space.granted(base, 1));
}

TEST_F(AddressSpaceTest, VariablesAreForTheirOwnProcessAndDevice) {
  const Allocation& variable = allocate(64, 0, Allocation::Kind::kModule);
  space.set_peer_access(0, 1, 0, true);
  EXPECT_EQ(fault(variable.base, 4), AccessFault::kNone);
  EXPECT_EQ(fault(variable.base, 4, {.rank = 0, .device = 1}), AccessFault::kNotPermitted);
  EXPECT_EQ(fault(variable.base, 4, kOther), AccessFault::kNotPermitted);
}

TEST_F(AddressSpaceTest, AllocationsOfNoBytesHaveAnAddress) {
  const Allocation& empty = allocate(0);
  EXPECT_EQ(space.find(empty.base), &empty);
  EXPECT_EQ(fault(empty.base, 1), AccessFault::kOutOfBounds);
  EXPECT_TRUE(space.free(0, empty.base, Allocation::Kind::kDevice));
}

TEST_F(AddressSpaceTest, AMemberThatIsFreedTakesItsMulticastAddressAlong) {
  const Allocation& a = allocate(64, 0, Allocation::Kind::kSymmetric);
  const Allocation& b = allocate(64, 1, Allocation::Kind::kSymmetric);
  const Allocation* all = space.allocate_multicast({&a, &b});
  space.grant_everyone(b.base);
  EXPECT_EQ(space.check(all->base, 4, kOwner, true, true).fault, AccessFault::kNone);
  space.free(1, b.base, Allocation::Kind::kSymmetric);
  EXPECT_EQ(space.check(all->base, 4, kOwner, true, true).fault, AccessFault::kUseAfterFree);
}

TEST_F(AddressSpaceTest, DescriptionsSayWhereAnAddressLies) {
  const Allocation* a =
      space.allocate({.bytes = 1000, .kind = Allocation::Kind::kPool, .label = "input 0"});
  EXPECT_EQ(space.describe(a->base + 8), "input 0 of rank 0 + 8 (of 1000 bytes)");
  EXPECT_EQ(space.describe(a->base + 1024),
            "24 bytes past the end of input 0 of rank 0 (1000 bytes)");
  EXPECT_EQ(space.describe(a->base - 16), "16 bytes before input 0 of rank 0 (1000 bytes)");
  uint64_t freed = allocate(64).base;
  space.free(0, freed, Allocation::Kind::kDevice);
  EXPECT_THAT(space.describe(freed), HasSubstr("freed device memory"));
  EXPECT_EQ(space.describe(0), "a null pointer");
  EXPECT_EQ(space.describe(8), "null + 8");
  EXPECT_THAT(space.describe(kScratchBase + 8), HasSubstr("shared or local"));
  EXPECT_THAT(space.describe(1 << 20), HasSubstr("no memory"));
}

TEST(ScratchSpaceTest, EqualSizesAreReused) {
  ScratchSpace scratch;
  uint64_t a = scratch.allocate(1000);
  uint64_t b = scratch.allocate(1000);
  EXPECT_GE(b, a + 1000 + 4096);
  scratch.release(a, 1000);
  EXPECT_EQ(scratch.allocate(990), a) << "the same size after rounding";
  EXPECT_EQ(scratch.allocate(kArenaBytes + 1), 0u);
  EXPECT_EQ(scratch.bytes_in_use(), 2048u);
}

TEST(ScratchSpaceTest, TheQuotaIsExact) {
  ScratchSpace scratch(4096);
  EXPECT_EQ(scratch.allocate(4097), 0u);
  uint64_t a = scratch.allocate(4096);
  EXPECT_NE(a, 0u);
  EXPECT_EQ(scratch.allocate(1), 0u);
  scratch.release(a, 4096);
  EXPECT_NE(scratch.allocate(1), 0u);
}

/// Two pages of physical memory and a reservation of four.
class Mappings : public ::testing::Test {
 protected:
  static constexpr uint64_t kChunk = uint64_t{2} << 20;
  static constexpr Accessor kOwner{0, 0};
  AddressSpace space{2, 2, uint64_t{1} << 30, MemoryQuota{}};
  uint64_t home = space.allocate_physical(0, 0, 2 * kChunk)->base;
  uint64_t base = space.reserve(0, 4 * kChunk, kChunk)->base;

  void map(uint64_t at, uint64_t from, uint64_t bytes = kChunk) {
    ASSERT_TRUE(space.map({.base = base + at,
                           .bytes = bytes,
                           .kind = Allocation::Kind::kMapped,
                           .rank = 0,
                           .device = 0,
                           .home = home + from}));
  }
  AccessFault fault(uint64_t address, uint64_t bytes, Accessor who = kOwner, bool write = true) {
    return space.check(address, bytes, who, write).fault;
  }
};

TEST_F(Mappings, OneMemoryIsSeenAtEveryAddressWhereItIsMapped) {
  map(0, 0);
  map(2 * kChunk, 0);
  *reinterpret_cast<uint32_t*>(base + 8) = 77;
  EXPECT_EQ(*reinterpret_cast<uint32_t*>(base + 2 * kChunk + 8), 77u);
  EXPECT_EQ(space.home_of(base + 2 * kChunk + 8), space.home_of(base + 8));
  space.unmap(base, base + kChunk);
  EXPECT_EQ(*reinterpret_cast<uint32_t*>(base + 2 * kChunk + 8), 77u);
  EXPECT_EQ(*reinterpret_cast<uint32_t*>(base + 8), 0u);
}

TEST_F(Mappings, AMappingStartsWithoutRightsAndLosesThem) {
  map(0, 0);
  EXPECT_EQ(fault(base, 4), AccessFault::kNotPermitted);
  space.set_access(base, base + kChunk, 1, 0);
  EXPECT_EQ(fault(base, 4, kOwner, false), AccessFault::kNone);
  EXPECT_EQ(fault(base, 4), AccessFault::kNotPermitted);
  EXPECT_EQ(fault(base, 4, {0, 1}, false), AccessFault::kNotPermitted);
  EXPECT_EQ(fault(base, 4, {1, 0}, false), AccessFault::kNotPermitted);
  space.set_access(base, base + kChunk, 3, 3);
  EXPECT_EQ(fault(base, 4, {0, 1}), AccessFault::kNone);
  uint32_t epoch = space.epoch();
  space.unmap(base, base + kChunk);
  EXPECT_NE(space.epoch(), epoch);
  EXPECT_EQ(fault(base, 4), AccessFault::kUnmapped);
}

TEST_F(Mappings, NeighboursAreOneRangeAndGapsAreNot) {
  map(0, kChunk);
  map(kChunk, 0);
  map(3 * kChunk, 0);
  space.set_access(base, base + 4 * kChunk, 1, 1);
  EXPECT_EQ(fault(base, 2 * kChunk), AccessFault::kNone);
  EXPECT_EQ(fault(base + kChunk, kChunk + 1), AccessFault::kOutOfBounds);
  EXPECT_EQ(fault(base + 2 * kChunk, 4), AccessFault::kUnmapped);
  space.set_access(base + kChunk, base + 2 * kChunk, 1, 0);
  EXPECT_EQ(fault(base, 2 * kChunk), AccessFault::kOutOfBounds);
}

TEST_F(Mappings, PhysicalMemoryCountsUntilItIsReleasedAndIsOutOfReach) {
  uint64_t free_bytes = space.device_bytes_free(0);
  EXPECT_EQ(space.device_bytes_total() - free_bytes, 2 * kChunk);
  EXPECT_EQ(fault(home, 4), AccessFault::kUnmapped);
  space.release_physical(home);
  EXPECT_EQ(space.device_bytes_free(0), space.device_bytes_total());
}

TEST_F(Mappings, AnEndedReservationIsKnownForWhatItWas) {
  map(0, 0);
  space.unmap(base, base + kChunk);
  space.unreserve(base);
  EXPECT_EQ(fault(base, 4), AccessFault::kUseAfterFree);
}

}  // namespace
}  // namespace cb::sim
