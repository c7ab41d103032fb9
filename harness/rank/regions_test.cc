#include "harness/rank/regions.h"

#include <gtest/gtest.h>

#include "tasks/poison.h"

namespace cb::harness {
namespace {

using Ranges = std::vector<ByteRange>;

TEST(RegionsTest, UnionJoinsTouchingRangesAndDropsEmptyOnes) {
  EXPECT_EQ(united({{10, 5}, {0, 4}, {4, 2}, {7, 0}, {12, 10}}), (Ranges{{0, 6}, {10, 12}}));
}

TEST(RegionsTest, SubtractionLeavesThePiecesBetween) {
  EXPECT_EQ(subtracted({{0, 100}}, {{10, 10}, {50, 50}}), (Ranges{{0, 10}, {20, 30}}));
  EXPECT_EQ(subtracted({{10, 10}}, {{0, 100}}), Ranges{});
  EXPECT_EQ(subtracted({{10, 10}, {30, 10}}, {{15, 20}}), (Ranges{{10, 5}, {35, 5}}));
}

TEST(RegionsTest, EverythingBesideTheRegionsIsGuardZone) {
  tasks::BufferSpec spec;
  spec.bytes = 20000;
  EXPECT_EQ(guard_zones(spec, {{5000, 100}}), (Ranges{{0, 5000}, {5100, 14900}}));
  EXPECT_EQ(poisoned(spec, {{5000, 100}}), (Ranges{{0, 20000}}));
}

TEST(RegionsTest, SparseBuffersHaveGuardZonesNearRegionsOnly) {
  tasks::BufferSpec spec;
  spec.bytes = uint64_t{5} << 30;
  spec.sparse = true;
  uint64_t far = uint64_t{4} << 30;
  EXPECT_EQ(guard_zones(spec, {{far, 100}}), (Ranges{{far - tasks::kGuardBytes, tasks::kGuardBytes},
                                                     {far + 100, tasks::kGuardBytes}}));
  EXPECT_EQ(guard_zones(spec, {}), Ranges{});
}

}  // namespace
}  // namespace cb::harness
