#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace cb::sim::client {

/// A mutex that needs no constructor at load time, and is none of the C library's, which simhost
/// lets wait in virtual time. Its holder must not wait for the simulator: see LockAcrossCalls.
class Mutex {
 public:
  void lock() {
    uint32_t state = kFree;
    if (state_.compare_exchange_strong(state, kHeld, std::memory_order_acquire)) return;
    while (state_.exchange(kContended, std::memory_order_acquire) != kFree) futex(FUTEX_WAIT);
  }
  bool try_lock() {
    uint32_t state = kFree;
    return state_.compare_exchange_strong(state, kHeld, std::memory_order_acquire);
  }
  void unlock() {
    if (state_.exchange(kFree, std::memory_order_release) == kContended) futex(FUTEX_WAKE);
  }

 private:
  static constexpr uint32_t kFree = 0, kHeld = 1, kContended = 2;

  /// FUTEX_WAIT sleeps while the mutex is contended; FUTEX_WAKE wakes one.
  void futex(int operation) {
    long count = operation == FUTEX_WAIT ? kContended : 1;
    long result = SYS_futex;
    register long timeout asm("r10") = 0;
    asm volatile("syscall"
                 : "+a"(result)
                 : "D"(&state_), "S"(operation | FUTEX_PRIVATE_FLAG), "d"(count), "r"(timeout)
                 : "rcx", "r11", "memory");
  }

  std::atomic<uint32_t> state_{kFree};
};

class Lock {
 public:
  explicit Lock(Mutex& mutex) : mutex_(mutex) { mutex_.lock(); }
  ~Lock() { mutex_.unlock(); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace cb::sim::client
