// Waits with a time limit, in virtual time. Condition variables and semaphores wake exactly
// (parking.h); timed locks of mutexes and read-write locks look again in growing steps.

#include <pthread.h>
#include <semaphore.h>
#include <cerrno>
#include <ctime>

#include "simulator/shims/simhost/parking.h"
#include "simulator/shims/simhost/real.h"
#include "simulator/shims/simhost/virtual_time.h"

using namespace cb::sim::simhost;

namespace {

using Condition = pthread_cond_t;
using MutexObject = pthread_mutex_t;
using RwLock = pthread_rwlock_t;

Real<int(Condition*, MutexObject*, const timespec*)> real_cond_timedwait("pthread_cond_timedwait");
Real<int(Condition*, MutexObject*, clockid_t, const timespec*)> real_cond_clockwait(
    "pthread_cond_clockwait");
Real<int(Condition*)> real_cond_signal("pthread_cond_signal");
Real<int(Condition*)> real_cond_broadcast("pthread_cond_broadcast");
Real<int(sem_t*, const timespec*)> real_sem_timedwait("sem_timedwait");
Real<int(sem_t*, clockid_t, const timespec*)> real_sem_clockwait("sem_clockwait");
Real<int(sem_t*)> real_sem_post("sem_post");
Real<int(MutexObject*, const timespec*)> real_mutex_timedlock("pthread_mutex_timedlock");
Real<int(MutexObject*, clockid_t, const timespec*)> real_mutex_clocklock("pthread_mutex_clocklock");
Real<int(RwLock*, const timespec*)> real_timedrdlock("pthread_rwlock_timedrdlock");
Real<int(RwLock*, const timespec*)> real_timedwrlock("pthread_rwlock_timedwrlock");
Real<int(RwLock*, clockid_t, const timespec*)> real_clockrdlock("pthread_rwlock_clockrdlock");
Real<int(RwLock*, clockid_t, const timespec*)> real_clockwrlock("pthread_rwlock_clockwrlock");

int wait_condition(Condition* condition, MutexObject* mutex, clockid_t clock,
                   const timespec* time) {
  if (time == nullptr || time->tv_nsec < 0 || time->tv_nsec >= static_cast<long>(kNsPerSecond)) {
    return EINVAL;
  }
  uint64_t deadline = ns_of(clock, *time);
  Waiter waiter;
  // Noted while the mutex is held, so that no signal is missed.
  enqueue(waiter, condition);
  int error = pthread_mutex_unlock(mutex);
  if (error != 0) {
    dequeue(waiter);
    return error;
  }
  sleep_parked(waiter, deadline);
  bool woken = dequeue(waiter);
  error = pthread_mutex_lock(mutex);
  if (error != 0) return error;
  return woken ? 0 : ETIMEDOUT;
}

int wait_semaphore(sem_t* semaphore, clockid_t clock, const timespec* time) {
  for (;;) {
    if (sem_trywait(semaphore) == 0) return 0;
    if (errno != EAGAIN) return -1;
    if (time == nullptr || time->tv_nsec < 0 || time->tv_nsec >= static_cast<long>(kNsPerSecond)) {
      errno = EINVAL;
      return -1;
    }
    Waiter waiter;
    enqueue(waiter, semaphore);
    // A post between the attempt and the note woke nobody.
    if (sem_trywait(semaphore) == 0) {
      dequeue(waiter);
      return 0;
    }
    sleep_parked(waiter, ns_of(clock, *time));
    if (dequeue(waiter)) continue;
    if (sem_trywait(semaphore) == 0) return 0;
    errno = ETIMEDOUT;
    return -1;
  }
}

/// `try_lock` returns 0, EBUSY, or another error that ends the attempt.
template <class TryLock>
int lock_until(clockid_t clock, const timespec* time, TryLock try_lock) {
  int error = try_lock();
  if (error != EBUSY) return error;
  if (time == nullptr || time->tv_nsec < 0 || time->tv_nsec >= static_cast<long>(kNsPerSecond)) {
    return EINVAL;
  }
  bool ended = poll_until(ns_of(clock, *time), [&] {
    error = try_lock();
    return error != EBUSY;
  });
  return ended ? error : ETIMEDOUT;
}

}  // namespace

CB_INTERPOSED int pthread_cond_timedwait(Condition* condition, MutexObject* mutex,
                                         const timespec* time) {
  if (!in_virtual_time()) return real_cond_timedwait(condition, mutex, time);
  // Which clock a condition variable was made for is not visible here; deadlines of
  // CLOCK_MONOTONIC lie before those of CLOCK_REALTIME by decades.
  bool monotonic = time->tv_sec < clock_at(CLOCK_REALTIME, 0).tv_sec;
  return wait_condition(condition, mutex, monotonic ? CLOCK_MONOTONIC : CLOCK_REALTIME, time);
}

CB_INTERPOSED int pthread_cond_clockwait(Condition* condition, MutexObject* mutex, clockid_t clock,
                                         const timespec* time) {
  if (!in_virtual_time()) return real_cond_clockwait(condition, mutex, clock, time);
  return wait_condition(condition, mutex, clock, time);
}

// Both kinds of waiters are told: the standard lets a waiter wake without reason.
CB_INTERPOSED int pthread_cond_signal(Condition* condition) noexcept {
  wake(condition, false);
  return real_cond_signal(condition);
}

CB_INTERPOSED int pthread_cond_broadcast(Condition* condition) noexcept {
  wake(condition, true);
  return real_cond_broadcast(condition);
}

CB_INTERPOSED int sem_timedwait(sem_t* semaphore, const timespec* time) {
  if (!in_virtual_time()) return real_sem_timedwait(semaphore, time);
  return wait_semaphore(semaphore, CLOCK_REALTIME, time);
}

CB_INTERPOSED int sem_clockwait(sem_t* semaphore, clockid_t clock, const timespec* time) {
  if (!in_virtual_time()) return real_sem_clockwait(semaphore, clock, time);
  return wait_semaphore(semaphore, clock, time);
}

CB_INTERPOSED int sem_post(sem_t* semaphore) noexcept {
  int result = real_sem_post(semaphore);
  wake(semaphore, false);
  return result;
}

CB_INTERPOSED int pthread_mutex_timedlock(MutexObject* mutex, const timespec* time) noexcept {
  if (!in_virtual_time()) return real_mutex_timedlock(mutex, time);
  return lock_until(CLOCK_REALTIME, time, [mutex] { return pthread_mutex_trylock(mutex); });
}

CB_INTERPOSED int pthread_mutex_clocklock(MutexObject* mutex, clockid_t clock,
                                          const timespec* time) noexcept {
  if (!in_virtual_time()) return real_mutex_clocklock(mutex, clock, time);
  return lock_until(clock, time, [mutex] { return pthread_mutex_trylock(mutex); });
}

CB_INTERPOSED int pthread_rwlock_timedrdlock(RwLock* lock, const timespec* time) noexcept {
  if (!in_virtual_time()) return real_timedrdlock(lock, time);
  return lock_until(CLOCK_REALTIME, time, [lock] { return pthread_rwlock_tryrdlock(lock); });
}

CB_INTERPOSED int pthread_rwlock_timedwrlock(RwLock* lock, const timespec* time) noexcept {
  if (!in_virtual_time()) return real_timedwrlock(lock, time);
  return lock_until(CLOCK_REALTIME, time, [lock] { return pthread_rwlock_trywrlock(lock); });
}

CB_INTERPOSED int pthread_rwlock_clockrdlock(RwLock* lock, clockid_t clock,
                                             const timespec* time) noexcept {
  if (!in_virtual_time()) return real_clockrdlock(lock, clock, time);
  return lock_until(clock, time, [lock] { return pthread_rwlock_tryrdlock(lock); });
}

CB_INTERPOSED int pthread_rwlock_clockwrlock(RwLock* lock, clockid_t clock,
                                             const timespec* time) noexcept {
  if (!in_virtual_time()) return real_clockwrlock(lock, clock, time);
  return lock_until(clock, time, [lock] { return pthread_rwlock_trywrlock(lock); });
}
