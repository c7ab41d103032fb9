#include "simulator/timing/line_cache.h"

#include <gtest/gtest.h>

namespace cb::sim {
namespace {

constexpr uint32_t kAll = 0xf;

uint32_t fetch(LineCache& cache, uint64_t line, uint32_t wanted) {
  return cache.fetch(cache.place_of(line), wanted);
}

TEST(LineCacheTest, SectorsAreFetchedOneByOne) {
  LineCache cache(4096);
  EXPECT_EQ(fetch(cache, 7, 0b0011), 0b0011u);
  EXPECT_EQ(fetch(cache, 7, 0b0110), 0b0100u);
  EXPECT_EQ(fetch(cache, 7, kAll), 0b1000u);
  EXPECT_EQ(fetch(cache, 7, kAll), 0u);
}

TEST(LineCacheTest, HoldsAsMuchAsItIsLarge) {
  // 100 000 lines are no power of two.
  constexpr uint64_t kLines = 100'000;
  LineCache cache(kLines << LineCache::kLineBits);
  for (uint64_t base : {uint64_t{1} << 30, uint64_t{12345}}) {
    for (uint64_t line = 0; line < kLines; ++line) EXPECT_EQ(fetch(cache, base + line, kAll), kAll);
    for (uint64_t line = 0; line < kLines; ++line) EXPECT_EQ(fetch(cache, base + line, kAll), 0u);
  }
}

TEST(LineCacheTest, StreamsLeaveNothingBehind) {
  LineCache cache(1 << 20);
  uint64_t hits = 0;
  for (int round = 0; round < 2; ++round) {
    for (uint64_t line = 0; line < 100'000; ++line) hits += fetch(cache, line, kAll) == 0;
  }
  EXPECT_EQ(hits, 0u);
}

TEST(LineCacheTest, WhatIsUsedOftenSurvivesAStream) {
  LineCache cache(4 << LineCache::kLineBits);  // one set
  fetch(cache, 1, kAll);
  uint64_t hits = 0;
  for (uint64_t line = 100; line < 200; ++line) {
    fetch(cache, line, kAll);
    hits += fetch(cache, 1, kAll) == 0;
    hits += fetch(cache, 1, kAll) == 0;
  }
  EXPECT_GE(hits, 190u);
}

TEST(LineCacheTest, EqualPlacesOfDifferentRanksAreDifferentLines) {
  LineCache cache(1 << 20);
  for (uint64_t rank = 0; rank < 24; ++rank) {
    for (uint64_t line = 0; line < 16; ++line) {
      EXPECT_EQ(fetch(cache, (rank << 30) + line, kAll), kAll) << rank;
    }
  }
}

TEST(LineCacheTest, TheNextLineIsTheOneThatALookUpFinds) {
  LineCache cache(1000 << LineCache::kLineBits);
  LineCache::Place place = cache.place_of(900);
  for (uint64_t line = 900; line < 1100; ++line) {
    EXPECT_EQ(place.name, cache.place_of(line).name);
    EXPECT_EQ(place.set, cache.place_of(line).set);
    cache.advance(place);
  }
}

TEST(LineCacheTest, ForgetsAtOnce) {
  LineCache cache(1 << 20);
  fetch(cache, 5, kAll);
  cache.forget();
  EXPECT_EQ(fetch(cache, 5, kAll), kAll);
  EXPECT_EQ(fetch(cache, 5, kAll), 0u);
}

}  // namespace
}  // namespace cb::sim
