#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "simulator/exec/micro_op.h"

namespace cb::sim {

/// A rate: each unit of work takes a fixed time, and a window of time has room for no more work
/// than its length. A request gets the first free room at or after the window of its arrival, so
/// requests need not come in the order of their times. What lies further back than the ring of
/// windows counts as full where a backlog reaches into the ring, and as free elsewhere. Within one
/// window order is not known, so that a result may be early by the length of a window.
class alignas(64) RateServer {
 public:
  RateServer() = default;
  /// Windows are 2^window_bits picoseconds long, at most 2^30; num_windows is a power of two,
  /// at least 8.
  RateServer(double units_per_ns, unsigned window_bits, unsigned num_windows);

  /// When `units` that arrive at `t` have passed: t plus their time when nothing else is there.
  Time pass(Time t, uint64_t units) {
    // Fractions of a picosecond are carried over: a single sector takes less than ten.
    auto scaled = static_cast<unsigned __int128>(units) * unit_ps_q16_ + fraction_q16_;
    Time work = static_cast<Time>(scaled >> 16);
    fraction_q16_ = static_cast<uint32_t>(scaled) & 0xffff;
    uint64_t window = std::max(t >> bits_, first_);
    if (t >> bits_ >= oldest_ && window - oldest_ <= mask_) [[likely]] {
      uint32_t& used = used_ps_[window & mask_];
      if (used + work < Time{1} << bits_) [[likely]] {
        used += static_cast<uint32_t>(work);
        return std::max(t + work, (window << bits_) + used);
      }
    }
    return pass_on(t, window, work);
  }

 private:
  /// Marks a full window; the other bits say how far ahead the next that may have room is.
  static constexpr uint32_t kFull = uint32_t{1} << 31;

  /// Takes room in more windows than one, or in one that the ring has not reached.
  Time pass_on(Time t, uint64_t window, Time work);
  /// The first window from `window` on that has room.
  uint64_t find_room(uint64_t window);
  void advance(uint64_t window);

  uint64_t unit_ps_q16_ = 0;
  uint32_t fraction_q16_ = 0;
  unsigned bits_ = 0;
  uint64_t mask_ = 0;
  uint64_t oldest_ = 0;            ///< first window of the ring
  bool forgot_full_ = false;       ///< the window before the ring was full
  uint64_t first_ = 0;             ///< no room before it; at least oldest_
  std::vector<uint32_t> used_ps_;  ///< of each window of the ring, or kFull
};

}  // namespace cb::sim
