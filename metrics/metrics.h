#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

/// Statistics and scores: pure functions.
namespace cb::metrics {

/// The middle value; the mean of the two middle ones for an even number. Nothing for no values.
std::optional<double> median(std::vector<double> values);

/// The n-th root of the product. Nothing for no values or one that is not positive.
std::optional<double> geometric_mean(std::span<const double> values);

/// GB/s (1e9 bytes per second) of `bytes` in `time_ps`; 0 for no time.
double algbw_gbps(uint64_t bytes, uint64_t time_ps);
/// Bandwidth of the busiest link: algbw times nccl-tests' factor of the operation
/// (doc/PERFORMANCE.md), 2 (n - 1) / n for an all-reduce.
double busbw_gbps(uint64_t bytes, double bus_factor, uint64_t time_ps);

/// What the scores are computed from: one candidate of one task.
struct Attempt {
  bool passed = false;
  /// Reference time / own time, above 1 is faster; nothing where it was not measured.
  std::optional<double> speedup;
};

/// A candidate is good if it is at most this much slower than the reference.
inline constexpr double kGoodTolerance = 0.05;

struct Scores {
  size_t attempts = 0;
  size_t passed = 0;
  size_t good = 0;      ///< passed, and within kGoodTolerance of the reference or faster
  size_t measured = 0;  ///< passed, with a speed-up

  double pass_rate = 0;
  double good_rate = 0;                      ///< PASS+Good
  std::optional<double> geomean_speedup;     ///< GM-speedup, over the measured ones
  std::optional<double> pass_times_geomean;  ///< Pass×GM: pass_rate * geomean_speedup
};
Scores scores(std::span<const Attempt> attempts);

}  // namespace cb::metrics
