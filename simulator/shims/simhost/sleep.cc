// Sleeping is a call to the simulator, which returns that much later in virtual time. A sleep is
// not ended by a signal.

#include <sched.h>
#include <unistd.h>
#include <cerrno>
#include <ctime>

#include "simulator/shims/simhost/real.h"
#include "simulator/shims/simhost/virtual_time.h"

using namespace cb::sim::simhost;

namespace {

Real<int(const timespec*, timespec*)> real_nanosleep("nanosleep");
Real<int(clockid_t, int, const timespec*, timespec*)> real_clock_nanosleep("clock_nanosleep");
Real<int(useconds_t)> real_usleep("usleep");
Real<unsigned(unsigned)> real_sleep("sleep");
Real<int()> real_sched_yield("sched_yield");

}  // namespace

CB_INTERPOSED int nanosleep(const timespec* duration, timespec* remaining) {
  if (!in_virtual_time()) return real_nanosleep(duration, remaining);
  if (duration == nullptr || !is_valid(*duration)) {
    errno = EINVAL;
    return -1;
  }
  sleep_ns(duration_ns(*duration));
  return 0;
}

CB_INTERPOSED int clock_nanosleep(clockid_t clock, int flags, const timespec* time,
                                  timespec* remaining) {
  if (!in_virtual_time()) return real_clock_nanosleep(clock, flags, time, remaining);
  if (time == nullptr || !is_valid(*time)) return EINVAL;
  if ((flags & TIMER_ABSTIME) == 0) {
    sleep_ns(duration_ns(*time));
    return 0;
  }
  uint64_t deadline = ns_of(clock, *time), now = now_ns();
  if (deadline > now) sleep_ns(deadline - now);
  return 0;
}

CB_INTERPOSED int usleep(useconds_t microseconds) {
  if (!in_virtual_time()) return real_usleep(microseconds);
  sleep_ns(uint64_t{microseconds} * 1000);
  return 0;
}

CB_INTERPOSED unsigned sleep(unsigned seconds) {
  if (!in_virtual_time()) return real_sleep(seconds);
  sleep_ns(seconds * kNsPerSecond);
  return 0;
}

// A thread that yields in a loop waits for another one, which gets nowhere while virtual time waits
// for this one.
CB_INTERPOSED int sched_yield() noexcept {
  if (!in_virtual_time()) return real_sched_yield();
  relax();
  return 0;
}
