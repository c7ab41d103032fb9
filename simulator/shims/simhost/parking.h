#pragma once

// Waits of limited time for something that another thread of this process announces: condition
// variables and semaphores. The waiter is noted here, under the address of the object, and sleeps
// in virtual time; the announcing call wakes it. (Waits without a time limit stay the C library's:
// a thread in an untimed futex counts as blocked.)

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

/// Wakes the longest-waiting thread of `object`, or all.
void wake(const void* object, bool all);

}  // namespace cb::sim::simhost
