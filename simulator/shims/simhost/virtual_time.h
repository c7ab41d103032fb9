#pragma once

#include <ctime>

#include <cstdint>

namespace cb::sim::simhost {

inline constexpr uint64_t kNsPerSecond = 1'000'000'000;

/// Whether the calling thread lives in virtual time: it has a connection and is not inside a
/// request (a signal handler may be).
bool in_virtual_time();

/// The thread's virtual time; the latest one known where no request can be made.
uint64_t now_ns();
/// Lets `ns` pass. False when the simulator is gone.
bool sleep_ns(uint64_t ns);
/// As `sleep_ns`, but `wake_thread` of another thread ends it.
bool sleep_until_woken_ns(uint64_t ns);
void wake_thread(uint32_t thread_id);
/// Lets a little time pass: what a spinning thread calls.
void relax();

/// What the virtual clock `clock` shows at `ns` of virtual time; `clock` may be any that runs with
/// time. The epoch of CLOCK_REALTIME is a fixed date.
timespec clock_at(clockid_t clock, uint64_t ns);
/// The virtual time at which `clock` shows `time`; 0 for the past.
uint64_t ns_of(clockid_t clock, const timespec& time);

/// A relative time; negative and overlong ones are cut off.
uint64_t duration_ns(const timespec& time);
inline bool is_valid(const timespec& time) {
  return time.tv_sec >= 0 && time.tv_nsec >= 0 && time.tv_nsec < static_cast<long>(kNsPerSecond);
}

/// Waits in virtual time until `ready()`, which must not block, or until `deadline_ns`
/// (kNoDeadline: for ever). Returns whether it became ready. The steps grow from 1 us to 1 ms,
/// which bounds how late something is noticed that no one announces.
inline constexpr uint64_t kNoDeadline = ~uint64_t{0};
template <class Ready>
bool poll_until(uint64_t deadline_ns, Ready ready) {
  constexpr uint64_t kFirstStepNs = 1'000;
  constexpr uint64_t kLastStepNs = 1'000'000;
  uint64_t step = kFirstStepNs;
  for (;;) {
    if (ready()) return true;
    uint64_t now = now_ns();
    if (now >= deadline_ns) return false;
    uint64_t left = deadline_ns - now;
    if (!sleep_ns(step < left ? step : left)) return false;
    if (step < kLastStepNs) step *= 2;
  }
}

}  // namespace cb::sim::simhost
