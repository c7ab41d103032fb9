#pragma once

// Virtual time: in which order host threads and devices act. Every host thread has a clock; device
// time never passes the clock of a thread that is in host code. A request is an event at its
// thread's clock, a return from a call one at its wake-up time. What comes next is the earliest of
// these, and it happens only when no thread in host code could still come before it. So nothing
// depends on when messages arrive.

#include <functional>
#include <string>
#include <vector>

#include "simulator/daemon/cluster.h"

namespace cb::sim {

class Gate {
 public:
  explicit Gate(Cluster& cluster) : cluster_(cluster) {}

  enum class Progress {
    kMade,
    kWaitsForHost,  ///< a thread in host code comes first
    kIdle,          ///< no thread lives, or a job waits for its trusted ranks
    kDeadlock,      ///< all threads wait, and nothing can end that
  };
  /// Does what comes next. `poll` as of Engine::run: lets the caller look at its sockets.
  Progress advance(const std::function<bool()>& poll);

  /// No thread acts, and no event happened, before it.
  Time now() const;

 private:
  struct Next;
  Next find_next();
  void settle_conditions();
  void wake_all(Time time);
  void handle_pending(HostThread& thread);

  Cluster& cluster_;
  Time last_action_ = 0;
};

}  // namespace cb::sim
