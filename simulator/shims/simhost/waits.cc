// Waits in virtual time, with a time limit and without. Condition variables, semaphores and mutexes
// wake exactly (parking.h); timed locks and read-write locks look again in growing steps.

#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>
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
Real<int(Condition*, MutexObject*)> real_cond_wait("pthread_cond_wait");
Real<int(Condition*)> real_cond_signal("pthread_cond_signal");
Real<int(Condition*)> real_cond_broadcast("pthread_cond_broadcast");
Real<int(sem_t*, const timespec*)> real_sem_timedwait("sem_timedwait");
Real<int(sem_t*, clockid_t, const timespec*)> real_sem_clockwait("sem_clockwait");
Real<int(sem_t*)> real_sem_wait("sem_wait");
Real<int(sem_t*)> real_sem_post("sem_post");
Real<int(MutexObject*)> real_mutex_lock("pthread_mutex_lock");
Real<int(MutexObject*)> real_mutex_unlock("pthread_mutex_unlock");
Real<int(MutexObject*, const timespec*)> real_mutex_timedlock("pthread_mutex_timedlock");
Real<int(MutexObject*, clockid_t, const timespec*)> real_mutex_clocklock("pthread_mutex_clocklock");
Real<int(RwLock*)> real_rdlock("pthread_rwlock_rdlock");
Real<int(RwLock*)> real_wrlock("pthread_rwlock_wrlock");
Real<int(RwLock*, const timespec*)> real_timedrdlock("pthread_rwlock_timedrdlock");
Real<int(RwLock*, const timespec*)> real_timedwrlock("pthread_rwlock_timedwrlock");
Real<int(RwLock*, clockid_t, const timespec*)> real_clockrdlock("pthread_rwlock_clockrdlock");
Real<int(RwLock*, clockid_t, const timespec*)> real_clockwrlock("pthread_rwlock_clockwrlock");

int wait_condition(Condition* condition, MutexObject* mutex, uint64_t deadline) {
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

/// `time` is looked at only when there is something to wait for; nullptr: `clock` is not used, and
/// the wait has no end.
int wait_semaphore(sem_t* semaphore, clockid_t clock, const timespec* time) {
  for (;;) {
    if (sem_trywait(semaphore) == 0) return 0;
    if (errno != EAGAIN) return -1;
    if (time != nullptr && !is_valid(*time)) {
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
    sleep_parked(waiter, time == nullptr ? kNoDeadline : ns_of(clock, *time));
    if (dequeue(waiter)) continue;
    if (sem_trywait(semaphore) == 0) return 0;
    errno = ETIMEDOUT;
    return -1;
  }
}

int wait_condition(Condition* condition, MutexObject* mutex, clockid_t clock,
                   const timespec* time) {
  if (time == nullptr || time->tv_nsec < 0 || time->tv_nsec >= static_cast<long>(kNsPerSecond)) {
    return EINVAL;
  }
  return wait_condition(condition, mutex, ns_of(clock, *time));
}

/// `try_lock` returns 0, EBUSY, or another error that ends the attempt.
template <class TryLock>
int lock_in_steps(uint64_t deadline_ns, TryLock try_lock) {
  int error = EBUSY;
  bool ended = poll_until(deadline_ns, [&] {
    error = try_lock();
    return error != EBUSY;
  });
  return ended ? error : ETIMEDOUT;
}

template <class TryLock>
int lock_until(clockid_t clock, const timespec* time, TryLock try_lock) {
  int error = try_lock();
  if (error != EBUSY) return error;
  if (time == nullptr || time->tv_nsec < 0 || time->tv_nsec >= static_cast<long>(kNsPerSecond)) {
    return EINVAL;
  }
  return lock_in_steps(ns_of(clock, *time), try_lock);
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

CB_INTERPOSED int pthread_cond_wait(Condition* condition, MutexObject* mutex) {
  if (!in_virtual_time()) return real_cond_wait(condition, mutex);
  return wait_condition(condition, mutex, kNoDeadline);
}

CB_INTERPOSED int pthread_cond_clockwait(Condition* condition, MutexObject* mutex, clockid_t clock,
                                         const timespec* time) {
  if (!in_virtual_time()) return real_cond_clockwait(condition, mutex, clock, time);
  return wait_condition(condition, mutex, clock, time);
}

// Both kinds of waiters are told: the standard lets a waiter wake without reason.
CB_INTERPOSED int pthread_cond_signal(Condition* condition) noexcept {
  wake(condition, 1);
  return real_cond_signal(condition);
}

CB_INTERPOSED int pthread_cond_broadcast(Condition* condition) noexcept {
  wake(condition, kAllWaiters);
  return real_cond_broadcast(condition);
}

CB_INTERPOSED int sem_wait(sem_t* semaphore) {
  if (!in_virtual_time()) return real_sem_wait(semaphore);
  return wait_semaphore(semaphore, CLOCK_REALTIME, nullptr);
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
  wake(semaphore, 1);
  return result;
}

CB_INTERPOSED int pthread_mutex_lock(MutexObject* mutex) noexcept {
  if (!in_virtual_time()) return real_mutex_lock(mutex);
  for (;;) {
    int error = pthread_mutex_trylock(mutex);
    // An error-checking mutex tells its own holder at once.
    bool is_own =
        mutex->__data.__owner == gettid() && mutex->__data.__kind == PTHREAD_MUTEX_ERRORCHECK_NP;
    if (error != EBUSY) return error;
    if (is_own) return EDEADLK;
    Waiter waiter;
    enqueue(waiter, mutex);
    // An unlock between the attempt and the note woke nobody.
    error = pthread_mutex_trylock(mutex);
    if (error == EBUSY) sleep_parked(waiter, kNoDeadline);
    dequeue(waiter);
    if (error != EBUSY) return error;
  }
}

CB_INTERPOSED int pthread_mutex_unlock(MutexObject* mutex) noexcept {
  int error = real_mutex_unlock(mutex);
  wake(mutex, 1);
  return error;
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

CB_INTERPOSED int pthread_rwlock_rdlock(RwLock* lock) noexcept {
  if (!in_virtual_time()) return real_rdlock(lock);
  return lock_in_steps(kNoDeadline, [lock] { return pthread_rwlock_tryrdlock(lock); });
}

CB_INTERPOSED int pthread_rwlock_wrlock(RwLock* lock) noexcept {
  if (!in_virtual_time()) return real_wrlock(lock);
  return lock_in_steps(kNoDeadline, [lock] { return pthread_rwlock_trywrlock(lock); });
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
