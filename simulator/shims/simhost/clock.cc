// Clocks show virtual time, also the CPU-time clocks: what a program measures must not depend on
// the machine that simulates it.

#include <sys/time.h>
#include <cerrno>
#include <ctime>

#include "simulator/shims/simhost/real.h"
#include "simulator/shims/simhost/virtual_time.h"

#include "simulator/shims/client/process.h"

using namespace cb::sim::simhost;

namespace {

Real<int(clockid_t, timespec*)> real_clock_gettime("clock_gettime");
Real<int(timeval*, void*)> real_gettimeofday("gettimeofday");
Real<time_t(time_t*)> real_time("time");
Real<clock_t()> real_clock("clock");
Real<int(timespec*, int)> real_timespec_get("timespec_get");

/// Also for threads without a connection, which see the latest time of the others.
bool is_virtual() {
  return cb::sim::client::process.link.load(std::memory_order_relaxed) ==
         cb::sim::client::Link::kUp;
}

bool runs_with_time(clockid_t clock) {
  switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_TAI:
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME:
    case CLOCK_PROCESS_CPUTIME_ID:
    case CLOCK_THREAD_CPUTIME_ID:
      return true;
    default:
      return false;
  }
}

}  // namespace

CB_INTERPOSED int clock_gettime(clockid_t clock, timespec* time) noexcept {
  if (!is_virtual() || !runs_with_time(clock)) return real_clock_gettime(clock, time);
  *time = clock_at(clock, now_ns());
  return 0;
}

CB_INTERPOSED int gettimeofday(timeval* time, void* zone) noexcept {
  if (!is_virtual()) return real_gettimeofday(time, zone);
  timespec now = clock_at(CLOCK_REALTIME, now_ns());
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

CB_INTERPOSED time_t time(time_t* result) noexcept {
  if (!is_virtual()) return real_time(result);
  time_t now = clock_at(CLOCK_REALTIME, now_ns()).tv_sec;
  if (result != nullptr) *result = now;
  return now;
}

CB_INTERPOSED clock_t clock() noexcept {
  if (!is_virtual()) return real_clock();
  return static_cast<clock_t>(now_ns() / (kNsPerSecond / CLOCKS_PER_SEC));
}

CB_INTERPOSED int timespec_get(timespec* time, int base) noexcept {
  if (!is_virtual() || base != TIME_UTC) return real_timespec_get(time, base);
  *time = clock_at(CLOCK_REALTIME, now_ns());
  return base;
}
