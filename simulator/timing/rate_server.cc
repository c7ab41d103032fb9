#include "simulator/timing/rate_server.h"

#include <bit>

#include "base/check.h"

namespace cb::sim {

RateServer::RateServer(double units_per_ns, unsigned window_bits, unsigned num_windows)
    : unit_ps_q16_(static_cast<uint64_t>(65536 * 1000 / units_per_ns + 0.5)),
      bits_(window_bits),
      mask_(num_windows - 1),
      used_ps_(num_windows) {
  CB_CHECK(std::has_single_bit(num_windows) && window_bits <= 30, "the ring is indexed by masking");
}

void RateServer::advance(uint64_t window) {
  uint64_t size = used_ps_.size();
  if (window < oldest_ + size) return;
  uint64_t oldest = window - size + 1;
  if (oldest - oldest_ >= size) {
    std::fill(used_ps_.begin(), used_ps_.end(), 0);
  } else {
    for (uint64_t w = oldest_; w < oldest; ++w) used_ps_[w & mask_] = 0;
  }
  oldest_ = oldest;
  first_ = std::max(first_, oldest_);
}

uint64_t RateServer::find_room(uint64_t window) {
  uint64_t end = oldest_ + used_ps_.size();
  uint64_t found = window;
  while (found < end && (used_ps_[found & mask_] & kFull) != 0) {
    found += used_ps_[found & mask_] & ~kFull;
  }
  // Whoever comes this way again goes there directly.
  for (uint64_t w = window; w < found;) {
    uint32_t& entry = used_ps_[w & mask_];
    uint64_t next = w + (entry & ~kFull);
    entry = kFull | static_cast<uint32_t>(found - w);
    w = next;
  }
  return found;
}

Time RateServer::pass_on(Time t, uint64_t window, Time work) {
  const Time length = Time{1} << bits_;
  const Time soonest = t + work;
  if (work > length * used_ps_.size() / 4) {
    // Longer than the ring can tell apart: it takes everything from here on.
    Time end = std::max(t, window << bits_) + work;
    first_ = std::max(first_, end >> bits_);
    advance(first_);
    return end;
  }
  while (true) {
    window = find_room(window);
    advance(window);
    uint32_t& used = used_ps_[window & mask_];
    Time taken = std::min(length - used, work);
    work -= taken;
    Time end = (window << bits_) + used + taken;
    used = used + taken == length ? kFull | 1 : used + static_cast<uint32_t>(taken);
    if (work == 0) return std::max(end, soonest);
    ++window;
  }
}

}  // namespace cb::sim
