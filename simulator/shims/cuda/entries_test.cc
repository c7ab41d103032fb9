#include "simulator/shims/cuda/entries.h"

#include <cuda.h>
#include <gtest/gtest.h>

#include <string>

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

TEST(Entries, EveryFunctionIsFoundByItsName) {
  for (const char* symbol : {
#define CB_ENTRY(symbol, number) #symbol,
#include "simulator/shims/cuda/entries.inc"
#undef CB_ENTRY
       }) {
    std::string name = symbol;
    auto ends_with = [&name](const std::string& end) {
      return name.size() > end.size() &&
             name.compare(name.size() - end.size(), end.size(), end) == 0;
    };
    bool per_thread = ends_with("_ptsz") || ends_with("_ptds");
    if (per_thread) name.resize(name.size() - 5);
    if (name.size() > 3 && name.compare(name.size() - 3, 2, "_v") == 0)
      name.resize(name.size() - 3);
    EntryLookup lookup = find_entry(name.c_str(), CUDA_VERSION, per_thread);
    EXPECT_NE(lookup.function, nullptr) << symbol;
  }
}

TEST(Entries, ThePerThreadFormIsGivenWhereThereIsOne) {
  EXPECT_NE(find_entry("cuLaunchKernel", 13000, true).function,
            find_entry("cuLaunchKernel", 13000, false).function);
  EXPECT_EQ(find_entry("cuMemAlloc", 13000, true).function,
            find_entry("cuMemAlloc", 13000, false).function);
}

}  // namespace
}  // namespace cb::sim::client
