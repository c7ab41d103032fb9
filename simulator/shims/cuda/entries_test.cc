#include "simulator/shims/cuda/entries.h"

#include <cuda.h>
#include <gtest/gtest.h>

namespace cb::sim::client {
namespace {

TEST(Entries, TheNewestVersionUpToTheOneAskedForIsFound) {
  EntryLookup newest = find_entry("cuMemAlloc", 13000, false);
  EXPECT_EQ(newest.function, reinterpret_cast<void*>(cuMemAlloc));
  EntryLookup oldest = find_entry("cuMemAlloc", 2000, false);
  EXPECT_NE(oldest.function, nullptr);
  EXPECT_NE(oldest.function, newest.function);
}

TEST(Entries, ANameOfLaterVersionsIsKnownButNotFound) {
  EntryLookup lookup = find_entry("cuMulticastCreate", 11000, false);
  EXPECT_EQ(lookup.function, nullptr);
  EXPECT_TRUE(lookup.name_known);
  EXPECT_NE(find_entry("cuMulticastCreate", 13000, false).function, nullptr);
  EXPECT_FALSE(find_entry("cuNoSuchThing", 13000, false).name_known);
}

TEST(Entries, ThePerThreadFormIsGivenWhereThereIsOne) {
  EXPECT_NE(find_entry("cuLaunchKernel", 13000, true).function,
            find_entry("cuLaunchKernel", 13000, false).function);
  EXPECT_EQ(find_entry("cuMemAlloc", 13000, true).function,
            find_entry("cuMemAlloc", 13000, false).function);
}

}  // namespace
}  // namespace cb::sim::client
