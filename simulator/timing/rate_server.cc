#include "simulator/timing/rate_server.h"

#include <bit>

#include "base/check.h"

namespace cb::sim {

RateServer::RateServer(double units_per_ns, unsigned window_bits, unsigned num_windows)
    : unit_ps_q16_(static_cast<uint64_t>(65536 * 1000 / units_per_ns + 0.5)),
      bits_(window_bits),
      mask_(num_windows - 1),
      used_ps_(num_windows) {
  CB_CHECK(std::has_single_bit(num_windows) && num_windows >= 8 && window_bits <= 30,
           "the ring is indexed by masking");
}

void RateServer::advance(uint64_t window) {
  uint64_t size = used_ps_.size();
  if (window < oldest_ + size) return;
  // An eighth further than it must, so that it seldom must.
  uint64_t oldest = window - size + 1 + size / 8;
  forgot_full_ = oldest - oldest_ <= size && (used_ps_[(oldest - 1) & mask_] & kFull) != 0;
  auto begin = used_ps_.begin();
  auto first = static_cast<std::ptrdiff_t>(oldest_ & mask_);
  auto last = static_cast<std::ptrdiff_t>(oldest & mask_);
  if (oldest - oldest_ >= size) {
    std::fill(begin, used_ps_.end(), 0);
  } else if (first < last) {
    std::fill(begin + first, begin + last, 0);
  } else {
    std::fill(begin + first, used_ps_.end(), 0);
    std::fill(begin, begin + last, 0);
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
  // Before the ring, where there was room: a late request must not wait for what came later.
  if (t >> bits_ < oldest_ && first_ == oldest_ && !forgot_full_) return soonest;
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
