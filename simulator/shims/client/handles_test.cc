#include "simulator/shims/client/handles.h"

#include <gtest/gtest.h>

#include <set>

namespace cb::sim::client {
namespace {

struct Thing {
  int value = 3;
};

TEST(Handles, FindsWhatWasCreatedAndNothingElse) {
  HandleTable<Thing, 8> table;
  void* handle = nullptr;
  Thing* thing = table.create(&handle);
  ASSERT_NE(thing, nullptr);
  EXPECT_EQ(table.find(handle), thing);
  EXPECT_EQ(thing->value, 3);
  int local = 0;
  EXPECT_EQ(table.find(nullptr), nullptr);
  EXPECT_EQ(table.find(&local), nullptr);
  EXPECT_EQ(table.find(static_cast<char*>(handle) + 1), nullptr);
  EXPECT_EQ(table.find(static_cast<char*>(handle) + 64), nullptr);
  EXPECT_EQ(table.find(reinterpret_cast<void*>(~uintptr_t{0})), nullptr);
}

TEST(Handles, AStaleHandleStaysInvalidWhenItsSlotIsUsedAgain) {
  HandleTable<Thing, 4> table;
  void* old_handle = nullptr;
  table.create(&old_handle);
  EXPECT_TRUE(table.destroy(old_handle));
  EXPECT_FALSE(table.destroy(old_handle));
  std::set<void*> live;
  for (int at = 0; at < 4; ++at) {
    void* handle = nullptr;
    ASSERT_NE(table.create(&handle), nullptr);
    live.insert(handle);
  }
  EXPECT_EQ(live.size(), 4u);
  EXPECT_EQ(live.count(old_handle), 0u);
  EXPECT_EQ(table.find(old_handle), nullptr);
}

TEST(Handles, AFullTableCreatesNothing) {
  HandleTable<Thing, 2> table;
  void* handles[3] = {};
  EXPECT_NE(table.create(&handles[0]), nullptr);
  EXPECT_NE(table.create(&handles[1]), nullptr);
  EXPECT_EQ(table.create(&handles[2]), nullptr);
  table.destroy(handles[0]);
  EXPECT_NE(table.create(&handles[2]), nullptr);
}

TEST(Handles, VisitsTheLiveOnes) {
  HandleTable<Thing, 8> table;
  void* handles[3] = {};
  for (auto& handle : handles) table.create(&handle);
  table.destroy(handles[1]);
  std::set<void*> visited;
  table.for_each([&](void* handle, Thing&) { visited.insert(handle); });
  EXPECT_EQ(visited, (std::set<void*>{handles[0], handles[2]}));
}

}  // namespace
}  // namespace cb::sim::client
