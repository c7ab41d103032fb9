#include "search/eval/concurrency.h"

#include <gtest/gtest.h>

#include <thread>

#include "search/eval/work_queue.h"

namespace cb::eval {
namespace {

void answer(ConcurrencyLimit& limit, size_t count, bool put_off) {
  for (size_t i = 0; i < count; ++i) {
    ASSERT_TRUE(limit.acquire());
    limit.release(put_off);
  }
}

TEST(ConcurrencyLimit, GrowsSlowlyAndIsHalvedAtOnce) {
  ConcurrencyLimit limit(2, 10);
  answer(limit, 2, false);
  EXPECT_EQ(limit.limit(), 3u);
  answer(limit, 3, false);
  EXPECT_EQ(limit.limit(), 4u);
  answer(limit, 1, true);
  EXPECT_EQ(limit.limit(), 2u);
  answer(limit, 5, true);
  EXPECT_EQ(limit.limit(), 1u);
  answer(limit, 1000, false);
  EXPECT_EQ(limit.limit(), 10u);
}

TEST(ConcurrencyLimit, LetsWaitersGoWhenItStops) {
  ConcurrencyLimit limit(1, 1);
  ASSERT_TRUE(limit.acquire());
  std::thread waiter([&] { EXPECT_FALSE(limit.acquire()); });
  limit.stop();
  waiter.join();
}

TEST(WorkQueue, GivesUrgentWorkFirstAndEndsWhenClosed) {
  WorkQueue<int> queue(0);
  queue.put(1);
  queue.put(2);
  queue.put_first(0);
  queue.close();
  EXPECT_FALSE(queue.put(3));
  EXPECT_EQ(queue.take(), 0);
  EXPECT_EQ(queue.take(), 1);
  EXPECT_EQ(queue.take(), 2);
  EXPECT_EQ(queue.take(), std::nullopt);
}

TEST(WorkQueue, HoldsNoMoreThanItMay) {
  WorkQueue<int> queue(1);
  ASSERT_TRUE(queue.put(1));
  std::thread producer([&] { EXPECT_TRUE(queue.put(2)); });
  EXPECT_EQ(queue.take(), 1);
  producer.join();
  queue.put_first(0);  // urgent work does not wait
  queue.close(true);
  EXPECT_EQ(queue.take(), std::nullopt);
}

}  // namespace
}  // namespace cb::eval
