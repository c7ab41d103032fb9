#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

namespace cb::metrics {

struct Interval {
  double low = 0;
  double high = 0;
};

struct BootstrapOptions {
  double confidence = 0.95;
  size_t resamples = 2000;
  uint64_t seed = 1;  ///< the same seed gives the same interval
};

/// A percentile bootstrap (Efron 1979) over `count` tasks: `statistic` gets the indices of a sample
/// drawn with replacement, and may have nothing to say about some. Tasks, not attempts, are drawn:
/// samples of one task are not independent. Nothing for no tasks, or when fewer than half of the
/// resamples have a value.
using Statistic = std::function<std::optional<double>(std::span<const size_t> tasks)>;
std::optional<Interval> bootstrap(size_t count, const Statistic& statistic,
                                  const BootstrapOptions& options = {});

/// The Wilson score interval (Wilson 1927) of a rate.
Interval wilson(uint64_t successes, uint64_t trials, double confidence = 0.95);

/// The quantile of the standard normal distribution, for 0 < p < 1 (Acklam's rational
/// approximation, relative error below 1.2e-9).
double normal_quantile(double p);

}  // namespace cb::metrics
