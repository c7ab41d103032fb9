// Waiting for descriptors. The descriptors are real, the waiting is virtual: the real call with no
// time to wait, then a little virtual time, and again. Also without a time limit, because a thread
// blocked in the kernel would stop virtual time for everyone.

#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <cerrno>
#include <csignal>
#include <ctime>

#include "simulator/shims/simhost/real.h"
#include "simulator/shims/simhost/virtual_time.h"

using namespace cb::sim::simhost;

namespace {

Real<int(pollfd*, nfds_t, int)> real_poll("poll");
Real<int(pollfd*, nfds_t, const timespec*, const sigset_t*)> real_ppoll("ppoll");
Real<int(int, fd_set*, fd_set*, fd_set*, timeval*)> real_select("select");
Real<int(int, fd_set*, fd_set*, fd_set*, const timespec*, const sigset_t*)> real_pselect("pselect");
Real<int(int, epoll_event*, int, int)> real_epoll_wait("epoll_wait");
Real<int(int, epoll_event*, int, int, const sigset_t*)> real_epoll_pwait("epoll_pwait");
Real<int(int, epoll_event*, int, const timespec*, const sigset_t*)> real_epoll_pwait2(
    "epoll_pwait2");

constexpr timespec kNoTime = {0, 0};

uint64_t deadline_after(uint64_t ns) { return now_ns() + ns; }
uint64_t deadline_after_ms(int milliseconds) {
  return milliseconds < 0 ? kNoDeadline : deadline_after(uint64_t(milliseconds) * 1'000'000);
}
uint64_t deadline_after(const timespec* duration) {
  return duration == nullptr ? kNoDeadline : deadline_after(duration_ns(*duration));
}

/// Repeats `attempt`, which returns as poll() does, until it returns something else than 0.
template <class Attempt>
int repeat(uint64_t deadline_ns, Attempt attempt) {
  int result = 0;
  poll_until(deadline_ns, [&] {
    result = attempt();
    return result != 0;
  });
  // A loop that polls without waiting must let time pass as well.
  if (result == 0) relax();
  return result;
}

/// select() overwrites its sets; they hold the question again for each attempt.
class FdSets {
 public:
  FdSets(int count, fd_set* read, fd_set* write, fd_set* except) : count_(count) {
    fd_set* given[3] = {read, write, except};
    for (int at = 0; at < 3; ++at) {
      sets_[at] = given[at];
      if (given[at] != nullptr) asked_[at] = *given[at];
    }
  }
  int attempt(const sigset_t* mask) {
    for (int at = 0; at < 3; ++at) {
      if (sets_[at] != nullptr) *sets_[at] = asked_[at];
    }
    return real_pselect(count_, sets_[0], sets_[1], sets_[2], &kNoTime, mask);
  }

 private:
  int count_;
  fd_set* sets_[3];
  fd_set asked_[3];
};

}  // namespace

CB_INTERPOSED int poll(pollfd* fds, nfds_t count, int timeout_ms) {
  if (!in_virtual_time()) return real_poll(fds, count, timeout_ms);
  return repeat(deadline_after_ms(timeout_ms), [&] { return real_poll(fds, count, 0); });
}

CB_INTERPOSED int ppoll(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask) {
  if (!in_virtual_time()) return real_ppoll(fds, count, timeout, mask);
  return repeat(deadline_after(timeout), [&] { return real_ppoll(fds, count, &kNoTime, mask); });
}

// What <poll.h> calls with _FORTIFY_SOURCE, after checking that the array is long enough.
// NOLINTNEXTLINE(readability-identifier-naming): the C library's name
CB_INTERPOSED int __poll_chk(pollfd* fds, nfds_t count, int timeout_ms, size_t) {
  return poll(fds, count, timeout_ms);
}

// NOLINTNEXTLINE(readability-identifier-naming): the C library's name
CB_INTERPOSED int __ppoll_chk(pollfd* fds, nfds_t count, const timespec* timeout,
                              const sigset_t* mask, size_t) {
  return ppoll(fds, count, timeout, mask);
}

CB_INTERPOSED int select(int count, fd_set* read, fd_set* write, fd_set* except, timeval* timeout) {
  if (!in_virtual_time()) return real_select(count, read, write, except, timeout);
  timespec duration = {};
  if (timeout != nullptr) duration = {timeout->tv_sec, timeout->tv_usec * 1000};
  FdSets sets(count, read, write, except);
  return repeat(deadline_after(timeout == nullptr ? nullptr : &duration),
                [&] { return sets.attempt(nullptr); });
}

CB_INTERPOSED int pselect(int count, fd_set* read, fd_set* write, fd_set* except,
                          const timespec* timeout, const sigset_t* mask) {
  if (!in_virtual_time()) return real_pselect(count, read, write, except, timeout, mask);
  FdSets sets(count, read, write, except);
  return repeat(deadline_after(timeout), [&] { return sets.attempt(mask); });
}

CB_INTERPOSED int epoll_wait(int epoll, epoll_event* events, int max_events, int timeout_ms) {
  if (!in_virtual_time()) return real_epoll_wait(epoll, events, max_events, timeout_ms);
  return repeat(deadline_after_ms(timeout_ms),
                [&] { return real_epoll_wait(epoll, events, max_events, 0); });
}

CB_INTERPOSED int epoll_pwait(int epoll, epoll_event* events, int max_events, int timeout_ms,
                              const sigset_t* mask) {
  if (!in_virtual_time()) return real_epoll_pwait(epoll, events, max_events, timeout_ms, mask);
  return repeat(deadline_after_ms(timeout_ms),
                [&] { return real_epoll_pwait(epoll, events, max_events, 0, mask); });
}

CB_INTERPOSED int epoll_pwait2(int epoll, epoll_event* events, int max_events,
                               const timespec* timeout, const sigset_t* mask) {
  if (!in_virtual_time()) return real_epoll_pwait2(epoll, events, max_events, timeout, mask);
  return repeat(deadline_after(timeout),
                [&] { return real_epoll_pwait(epoll, events, max_events, 0, mask); });
}
