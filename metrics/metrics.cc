#include "metrics/metrics.h"

#include <algorithm>
#include <cmath>

namespace cb::metrics {

std::optional<double> median(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  size_t middle = values.size() / 2;
  if (values.size() % 2 == 1) return values[middle];
  return (values[middle - 1] + values[middle]) / 2;
}

std::optional<double> geometric_mean(std::span<const double> values) {
  if (values.empty()) return std::nullopt;
  double logs = 0;
  for (double value : values) {
    if (!(value > 0)) return std::nullopt;
    logs += std::log(value);
  }
  return std::exp(logs / static_cast<double>(values.size()));
}

double algbw_gbps(uint64_t bytes, uint64_t time_ps) {
  if (time_ps == 0) return 0;
  return static_cast<double>(bytes) * 1000 / static_cast<double>(time_ps);
}

double busbw_gbps(uint64_t bytes, double bus_factor, uint64_t time_ps) {
  return algbw_gbps(bytes, time_ps) * bus_factor;
}

Scores scores(std::span<const Attempt> attempts) {
  Scores result;
  result.attempts = attempts.size();
  std::vector<double> speedups;
  for (const Attempt& attempt : attempts) {
    if (!attempt.passed) continue;
    ++result.passed;
    if (!attempt.speedup) continue;
    speedups.push_back(*attempt.speedup);
    if (*attempt.speedup * (1 + kGoodTolerance) >= 1) ++result.good;
  }
  result.measured = speedups.size();
  if (result.attempts > 0) {
    auto count = static_cast<double>(result.attempts);
    result.pass_rate = static_cast<double>(result.passed) / count;
    result.good_rate = static_cast<double>(result.good) / count;
  }
  result.geomean_speedup = geometric_mean(speedups);
  if (result.geomean_speedup) {
    result.pass_times_geomean = result.pass_rate * *result.geomean_speedup;
  }
  return result;
}

}  // namespace cb::metrics
