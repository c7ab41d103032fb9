#include "metrics/speedup.h"

#include <algorithm>

#include "metrics/metrics.h"

namespace cb::metrics {

std::optional<CaseSpeedup> case_speedup(const CaseTime& time) {
  if (time.own_ps == 0 || time.reference_ps == 0) return std::nullopt;
  CaseSpeedup speedup;
  uint64_t own = time.own_ps;
  if (time.floor_ps && own < *time.floor_ps) {
    speedup.below_floor = true;
    own = *time.floor_ps;
  }
  double raw = static_cast<double>(time.reference_ps) / static_cast<double>(own);
  speedup.value = std::clamp(raw, 1 / kSpeedupCap, kSpeedupCap);
  speedup.capped = speedup.value != raw;
  return speedup;
}

std::optional<double> attempt_speedup(std::span<const CaseTime> cases) {
  std::vector<double> values;
  for (const CaseTime& time : cases) {
    if (auto speedup = case_speedup(time)) values.push_back(speedup->value);
  }
  return geometric_mean(values);
}

}  // namespace cb::metrics
