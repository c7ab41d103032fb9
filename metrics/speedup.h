#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace cb::metrics {

/// One measured case of an attempt.
struct CaseTime {
  uint64_t own_ps = 0;
  uint64_t reference_ps = 0;
  /// The least time that physics allows: bytes that must move over the bandwidth that there is.
  std::optional<uint64_t> floor_ps;
};

/// A case may count for at most so much, in either direction, so that one case neither ruins nor
/// wins a geometric mean.
inline constexpr double kSpeedupCap = 10;

struct CaseSpeedup {
  double value = 1;          ///< reference / own, within [1 / kSpeedupCap, kSpeedupCap]
  bool below_floor = false;  ///< faster than physics: the time is not believed
  bool capped = false;
};

/// A time below the floor counts as the floor. Nothing without both times.
std::optional<CaseSpeedup> case_speedup(const CaseTime& time);

/// The speed-up of an attempt: the geometric mean of its cases' speed-ups. Nothing for no cases.
std::optional<double> attempt_speedup(std::span<const CaseTime> cases);

}  // namespace cb::metrics
