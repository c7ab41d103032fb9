#include "simulator/shims/simhost/virtual_time.h"

#include "simulator/shims/client/call.h"
#include "simulator/shims/client/process.h"
#include "simulator/shims/client/thread.h"

namespace cb::sim::simhost {

using client::Call;
using client::process;

namespace {

/// 2026-01-01 00:00:00 UTC. A fixed date keeps runs identical.
constexpr uint64_t kEpochSeconds = 1'767'225'600;

/// A machine that has been up for a while, so that small differences do not become negative.
constexpr uint64_t kUptimeSeconds = 1'000;

uint64_t base_seconds(clockid_t clock) {
  switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_TAI:
      return kEpochSeconds;
    case CLOCK_PROCESS_CPUTIME_ID:
    case CLOCK_THREAD_CPUTIME_ID:
      return 0;
    default:
      return kUptimeSeconds;
  }
}

void remember(uint64_t ns) {
  uint64_t known = process.last_time_ns.load(std::memory_order_relaxed);
  while (known < ns && !process.last_time_ns.compare_exchange_weak(known, ns)) {
  }
}

}  // namespace

bool in_virtual_time() {
  client::Thread& thread = client::this_thread();
  return thread.connected() && !thread.busy && process.link.load() == client::Link::kUp;
}

uint64_t now_ns() {
  if (in_virtual_time()) {
    Call call(Op::kTimeNow);
    if (call.wait_raw()) remember(call.result(0));
    if (in_virtual_time()) return call.result(0);
  }
  return process.last_time_ns.load(std::memory_order_relaxed);
}

bool sleep_ns(uint64_t ns) {
  Call call(Op::kSleep);
  call.args(ns, 0);
  return in_virtual_time() && call.wait_raw();
}

bool sleep_until_woken_ns(uint64_t ns) {
  Call call(Op::kSleep);
  call.args(ns, 1);
  return in_virtual_time() && call.wait_raw();
}

void wake_thread(uint32_t thread_id) {
  if (in_virtual_time()) Call(Op::kThreadWake).args(thread_id).send();
}

void relax() {
  if (in_virtual_time()) Call(Op::kRelax).wait_raw();
}

timespec clock_at(clockid_t clock, uint64_t ns) {
  timespec time;
  time.tv_sec = static_cast<time_t>(base_seconds(clock) + ns / kNsPerSecond);
  time.tv_nsec = static_cast<long>(ns % kNsPerSecond);
  return time;
}

uint64_t ns_of(clockid_t clock, const timespec& time) {
  uint64_t base = base_seconds(clock);
  auto seconds = static_cast<uint64_t>(time.tv_sec);
  if (time.tv_sec < 0 || seconds < base) return 0;
  timespec since = {static_cast<time_t>(seconds - base), time.tv_nsec};
  return duration_ns(since);
}

uint64_t duration_ns(const timespec& time) {
  constexpr uint64_t kMaxSeconds = uint64_t{1} << 33;  // as nanoseconds still below 2^63
  if (time.tv_sec < 0 || time.tv_nsec < 0) return 0;
  auto seconds = static_cast<uint64_t>(time.tv_sec);
  if (seconds > kMaxSeconds) seconds = kMaxSeconds;
  return seconds * kNsPerSecond + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace cb::sim::simhost
