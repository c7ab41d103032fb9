#include "simulator/exec/mbarrier.h"

#include <fmt/format.h>

#include <cstdlib>

namespace cb::sim {

BarrierState BarrierState::initial(uint32_t count) {
  BarrierState state(0);
  state.set(0, count, count, 0);
  return state;
}

int32_t BarrierState::outstanding_bytes() const {
  constexpr uint32_t kSign = 1u << 20;
  auto field = static_cast<uint32_t>(bits_ >> 40 & (2 * kSign - 1));
  return static_cast<int32_t>(field ^ kSign) - static_cast<int32_t>(kSign);
}

void BarrierState::set(uint32_t parity, uint32_t pending, uint32_t expected, int64_t bytes) {
  constexpr uint64_t kByteField = (1u << 21) - 1;
  bits_ = kMark << 62 | uint64_t{parity} << 61 | (static_cast<uint64_t>(bytes) & kByteField) << 40 |
          uint64_t{expected} << 20 | pending;
}

std::optional<std::string> BarrierState::apply(const BarrierUpdate& update) {
  if (is_invalidated()) return "the mbarrier was invalidated";
  if (!is_valid()) return "the mbarrier is not initialised";
  uint64_t pending = uint64_t{this->pending()} + update.added;
  uint64_t arrivals = uint64_t{update.arrivals} + update.drops;
  if (pending > kMaxCount) return fmt::format("more than {} pending arrivals", kMaxCount);
  if (arrivals > pending) {
    return fmt::format("{} arrivals where the phase waits for {} ({})", arrivals, pending,
                       describe());
  }
  if (update.drops > expected()) {
    return fmt::format("{} arrivals are dropped of the {} that a phase expects", update.drops,
                       expected());
  }
  int64_t bytes = int64_t{outstanding_bytes()} + update.expect_bytes;
  if (bytes > int64_t{kMaxCount}) {
    return fmt::format("{} bytes outstanding: an mbarrier counts up to {}", bytes, kMaxCount);
  }
  bytes -= update.complete_bytes;
  if (bytes < -int64_t{kMaxCount}) {
    return fmt::format("{} bytes arrived that nobody announced: an mbarrier counts up to {}",
                       -bytes, kMaxCount);
  }
  uint32_t expected = this->expected() - update.drops;
  pending -= arrivals;
  if (pending != 0 || bytes != 0) {
    set(parity(), static_cast<uint32_t>(pending), expected, bytes);
    return std::nullopt;
  }
  if (!update.may_complete) {
    return fmt::format(".noComplete would complete the phase ({})", describe());
  }
  set(parity() ^ 1, expected, expected, 0);
  return std::nullopt;
}

std::string BarrierState::describe() const {
  if (is_invalidated()) return "invalidated";
  if (!is_valid()) return "not initialised";
  int32_t bytes = outstanding_bytes();
  std::string arrived = fmt::format("phase {}, {} of {} arrived", parity(),
                                    int64_t{expected()} - pending(), expected());
  if (bytes == 0) return arrived;
  return fmt::format("{}, {} bytes {}", arrived, std::abs(bytes),
                     bytes > 0 ? "outstanding" : "not announced");
}

}  // namespace cb::sim
