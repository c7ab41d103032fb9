#include "metrics/sampling.h"

#include <algorithm>

namespace cb::metrics {

std::optional<double> pass_at_k(uint64_t samples, uint64_t passed, uint64_t k) {
  if (k == 0 || k > samples || passed > samples) return std::nullopt;
  if (samples - passed < k) return 1.0;
  // The ratio of the binomials as a product, which neither overflows nor cancels.
  double all_fail = 1;
  for (uint64_t i = samples - passed + 1; i <= samples; ++i) {
    all_fail *= 1 - static_cast<double>(k) / static_cast<double>(i);
  }
  return 1 - all_fail;
}

double fast_p(std::span<const TimedAttempt> attempts, double threshold) {
  if (attempts.empty()) return 0;
  auto count = std::count_if(attempts.begin(), attempts.end(), [&](const TimedAttempt& attempt) {
    return attempt.passed && attempt.speedup && *attempt.speedup >= threshold;
  });
  return static_cast<double>(count) / static_cast<double>(attempts.size());
}

std::vector<CurvePoint> fast_p_curve(std::span<const TimedAttempt> attempts) {
  std::vector<double> thresholds = {0};
  for (const TimedAttempt& attempt : attempts) {
    if (attempt.passed && attempt.speedup) thresholds.push_back(*attempt.speedup);
  }
  std::sort(thresholds.begin(), thresholds.end());
  thresholds.erase(std::unique(thresholds.begin(), thresholds.end()), thresholds.end());
  std::vector<CurvePoint> curve;
  for (double threshold : thresholds) curve.push_back({threshold, fast_p(attempts, threshold)});
  return curve;
}

}  // namespace cb::metrics
