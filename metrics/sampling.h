#pragma once

// Scores over several samples of one task, and over tasks.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace cb::metrics {

/// The probability that at least one of `k` samples drawn without replacement from `samples`, of
/// which `passed` passed, is among those: 1 - C(n - c, k) / C(n, k), the unbiased estimator of
/// Chen et al. 2021 ("Evaluating Large Language Models Trained on Code"). Nothing for k > samples
/// or k = 0.
std::optional<double> pass_at_k(uint64_t samples, uint64_t passed, uint64_t k);

/// The fraction of all attempts that passed and are at least `threshold` times as fast as the
/// reference (KernelBench's fast_p). A failed attempt, and one that was not measured, is not.
struct TimedAttempt {
  bool passed = false;
  std::optional<double> speedup;
};
double fast_p(std::span<const TimedAttempt> attempts, double threshold);

struct CurvePoint {
  double threshold = 0;
  double fraction = 0;
};
/// fast_p where it changes: a step function, each point holding up to its threshold; the first is
/// {0, fraction that passed and was measured}. Falls from left to right.
std::vector<CurvePoint> fast_p_curve(std::span<const TimedAttempt> attempts);

}  // namespace cb::metrics
