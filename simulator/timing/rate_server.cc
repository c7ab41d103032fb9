#include "simulator/timing/rate_server.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace cb::sim {

RateServer::RateServer(double units_per_ns, unsigned window_bits, unsigned num_windows)
    : ps_per_unit_(1000 / units_per_ns), bits_(window_bits), used_ps_(num_windows) {
  CB_CHECK(std::has_single_bit(num_windows) && window_bits < 32, "the ring is indexed by masking");
}

void RateServer::advance(uint64_t window) {
  uint64_t size = used_ps_.size();
  if (window < oldest_ + size) return;
  uint64_t oldest = window - size + 1;
  if (oldest - oldest_ >= size) {
    std::fill(used_ps_.begin(), used_ps_.end(), 0);
  } else {
    for (uint64_t w = oldest_; w < oldest; ++w) used_ps_[w & (size - 1)] = 0;
  }
  oldest_ = oldest;
  full_below_ = std::max(full_below_, oldest_);
}

Time RateServer::pass_slowly(Time t, Time work) {
  const Time length = Time{1} << bits_;
  const uint64_t mask = used_ps_.size() - 1;
  const Time soonest = t + work;
  uint64_t window = std::max(t >> bits_, full_below_);
  if (work > (length * used_ps_.size()) / 4) {
    // Longer than the ring can tell apart: it takes everything from here on.
    Time start = std::max(t, window << bits_);
    advance(((start + work) >> bits_) + 1);
    full_below_ = std::max(full_below_, (start + work) >> bits_);
    return start + work;
  }
  Time end = soonest;
  while (true) {
    advance(window);
    uint32_t& used = used_ps_[window & mask];
    Time room = length - used;
    Time taken = std::min(room, work);
    used += static_cast<uint32_t>(taken);
    work -= taken;
    if (used == length && window == full_below_) ++full_below_;
    if (work == 0) {
      if (taken > 0) end = (window << bits_) + used;
      break;
    }
    ++window;
  }
  return std::max(end, soonest);
}

}  // namespace cb::sim
