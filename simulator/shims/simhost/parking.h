#pragma once

// Waits for something that another thread of this process announces: condition variables, mutexes,
// semaphores, futexes. The waiter is noted here, under the address of the object, and sleeps in
// virtual time; the announcing call wakes it. A thread asleep in the kernel would count as one in
// host code, and virtual time would wait for it.

#include <cstdint>

namespace cb::sim::simhost {

/// One waiting thread; lives on its stack.
struct Waiter {
  const void* object = nullptr;
  uint32_t thread_id = 0;
  bool woken = false;
  Waiter* next = nullptr;
};

/// Notes the calling thread as waiting for `object`.
void enqueue(Waiter& waiter, const void* object);
/// Sleeps until woken or until `deadline_ns`.
void sleep_parked(Waiter& waiter, uint64_t deadline_ns);
/// Ends the wait; true if it was woken.
bool dequeue(Waiter& waiter);

/// Wakes the `count` longest-waiting threads of `object`; how many there were.
int wake(const void* object, int count);
inline constexpr int kAllWaiters = 0x7fffffff;

}  // namespace cb::sim::simhost
