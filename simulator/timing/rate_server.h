#pragma once

#include <cstdint>
#include <vector>

#include "simulator/exec/micro_op.h"

namespace cb::sim {

/// A rate: each unit of work takes a fixed time, and a window of time has room for no more work
/// than its length. A request gets the first free room at or after its arrival, so requests need
/// not come in the order of their times. What lies further back than the ring of windows counts as
/// full.
class RateServer {
 public:
  RateServer() = default;
  /// Windows are 2^window_bits picoseconds long.
  RateServer(double units_per_ns, unsigned window_bits, unsigned num_windows);

  /// When `units` that arrive at `t` have passed: t plus their time when nothing else is there.
  Time pass(Time t, uint64_t units) {
    auto work = static_cast<Time>(static_cast<double>(units) * ps_per_unit_ + 0.5);
    uint64_t window = t >> bits_;
    // Nearly all requests fit into the window in which they arrive.
    if (window >= full_below_ && window < oldest_ + used_ps_.size()) [[likely]] {
      uint32_t& used = used_ps_[window & (used_ps_.size() - 1)];
      if (used + work < Time{1} << bits_) [[likely]] {
        used += static_cast<uint32_t>(work);
        Time end = (window << bits_) + used;
        return end > t + work ? end : t + work;
      }
    }
    return pass_slowly(t, work);
  }

 private:
  Time pass_slowly(Time t, Time work);
  void advance(uint64_t window);

  double ps_per_unit_ = 0;
  unsigned bits_ = 0;
  uint64_t oldest_ = 0;      ///< first window of the ring
  uint64_t full_below_ = 0;  ///< windows before it have no room
  std::vector<uint32_t> used_ps_;
};

}  // namespace cb::sim
