#pragma once

// Is one program faster than another on hardware? Launches are paired (A-B-B-A), so that drift
// cancels; what is compared is the logarithm of the ratio of the times of a pair.

#include <optional>
#include <span>
#include <vector>

#include "metrics/interval.h"

namespace cb::metrics {

enum class Comparison { kFaster, kSame, kSlower, kUnsure };
const char* to_string(Comparison comparison);

struct PairedOptions {
  double confidence = 0.98;  ///< of the interval; a false alarm on either side has half the rest
  /// Ratios within 1 / (1 + tolerance) and 1 + tolerance are the same to a user.
  double tolerance = 0.02;
};

struct PairedResult {
  Comparison comparison = Comparison::kUnsure;
  double ratio = 1;                  ///< time of A over time of B: the Hodges-Lehmann estimate
  std::optional<Interval> interval;  ///< of the ratio; nothing for too few pairs
  size_t pairs = 0;
  /// More pairs that would be needed before the interval exists at all; 0 when it does.
  size_t pairs_missing = 0;
};

struct TimePair {
  double a = 0;  ///< both in the same unit, above 0
  double b = 0;
};

/// FASTER: all of the interval is below 1 and A's estimate is more than the tolerance away. SAME:
/// all of it is within the tolerance. The interval is that of Wilcoxon's signed-rank test (exact
/// distribution, Walsh averages; Hollander and Wolfe, "Nonparametric Statistical Methods", section
/// 3.3), which assumes only that log ratios are symmetric around their median, so that a launch
/// that was disturbed moves it little.
PairedResult compare_paired(std::span<const TimePair> pairs, const PairedOptions& options = {});

}  // namespace cb::metrics
