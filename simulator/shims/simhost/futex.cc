// std::atomic::wait, std::future, std::latch and the like sleep in the kernel by
// syscall(SYS_futex). In virtual time they sleep in the simulator instead.

#include <linux/futex.h>
#include <sys/syscall.h>
#include <cerrno>
#include <cstdarg>
#include <ctime>

#include "simulator/shims/simhost/parking.h"
#include "simulator/shims/simhost/real.h"
#include "simulator/shims/simhost/virtual_time.h"

using namespace cb::sim::simhost;

namespace {

/// The system call itself: a value between -4095 and -1 is an error.
long enter_kernel(long number, const long (&args)[6]) {
  long result = number;
  register long fourth asm("r10") = args[3];
  register long fifth asm("r8") = args[4];
  register long sixth asm("r9") = args[5];
  asm volatile("syscall"
               : "+a"(result)
               : "D"(args[0]), "S"(args[1]), "d"(args[2]), "r"(fourth), "r"(fifth), "r"(sixth)
               : "rcx", "r11", "memory");
  return result;
}

/// FUTEX_WAIT counts from now, FUTEX_WAIT_BITSET to a point of time.
uint64_t deadline_of(int operation, const timespec* time) {
  if (time == nullptr) return kNoDeadline;
  if ((operation & FUTEX_CMD_MASK) == FUTEX_WAIT) return now_ns() + duration_ns(*time);
  return ns_of((operation & FUTEX_CLOCK_REALTIME) != 0 ? CLOCK_REALTIME : CLOCK_MONOTONIC, *time);
}

long wait_for_word(const uint32_t* word, int operation, uint32_t expected, const timespec* time) {
  Waiter waiter;
  enqueue(waiter, word);
  if (__atomic_load_n(word, __ATOMIC_SEQ_CST) != expected) {
    dequeue(waiter);
    return -EAGAIN;
  }
  sleep_parked(waiter, deadline_of(operation, time));
  return dequeue(waiter) ? 0 : -ETIMEDOUT;
}

long call_futex(const long (&args)[6]) {
  auto* word = reinterpret_cast<uint32_t*>(args[0]);
  auto operation = static_cast<int>(args[1]);
  switch (operation & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
      return wait_for_word(word, operation, static_cast<uint32_t>(args[2]),
                           reinterpret_cast<const timespec*>(args[3]));
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET: {
      auto wanted = static_cast<int>(args[2]);
      int woken = wake(word, wanted);
      long others = enter_kernel(SYS_futex, args);
      return others < 0 ? others : woken + others;
    }
    default:
      return enter_kernel(SYS_futex, args);
  }
}

}  // namespace

CB_INTERPOSED long syscall(long number, ...) noexcept {
  long args[6];
  va_list list;
  va_start(list, number);
  for (long& arg : args) arg = va_arg(list, long);
  va_end(list);
  long result =
      number == SYS_futex && in_virtual_time() ? call_futex(args) : enter_kernel(number, args);
  if (result >= 0 || result < -4095) return result;
  errno = static_cast<int>(-result);
  return -1;
}
