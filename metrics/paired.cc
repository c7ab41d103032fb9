#include "metrics/paired.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "metrics/metrics.h"

namespace cb::metrics {
namespace {

/// The largest k for which P(W <= k) <= tail, W the signed-rank statistic of n pairs; nothing where
/// even P(W = 0) = 2^-n is more.
std::optional<size_t> critical_rank_sum(size_t n, double tail) {
  size_t most = n * (n + 1) / 2;
  // ways[w]: how many of the 2^n sign patterns have rank sum w, as a share of all.
  std::vector<double> ways(most + 1, 0);
  ways[0] = 1;
  size_t reach = 0;
  for (size_t rank = 1; rank <= n; ++rank) {
    reach += rank;
    for (size_t w = reach + 1; w-- > 0;) {
      ways[w] = (ways[w] + (w >= rank ? ways[w - rank] : 0)) / 2;
    }
  }
  double cumulative = 0;
  std::optional<size_t> critical;
  for (size_t w = 0; w <= most; ++w) {
    cumulative += ways[w];
    if (cumulative > tail) break;
    critical = w;
  }
  return critical;
}

std::vector<double> walsh_averages(const std::vector<double>& values) {
  std::vector<double> averages;
  averages.reserve(values.size() * (values.size() + 1) / 2);
  for (size_t i = 0; i < values.size(); ++i) {
    for (size_t k = i; k < values.size(); ++k) averages.push_back((values[i] + values[k]) / 2);
  }
  std::sort(averages.begin(), averages.end());
  return averages;
}

Comparison judge(double ratio, const Interval& interval, double tolerance) {
  if (interval.low >= 1 / (1 + tolerance) && interval.high <= 1 + tolerance) {
    return Comparison::kSame;
  }
  if (interval.high < 1 && ratio < 1 / (1 + tolerance)) return Comparison::kFaster;
  if (interval.low > 1 && ratio > 1 + tolerance) return Comparison::kSlower;
  return Comparison::kUnsure;
}

}  // namespace

const char* to_string(Comparison comparison) {
  constexpr std::array kNames = {"FASTER", "SAME", "SLOWER", "UNSURE"};
  return kNames[static_cast<size_t>(comparison)];
}

PairedResult compare_paired(std::span<const TimePair> pairs, const PairedOptions& options) {
  PairedResult result;
  result.pairs = pairs.size();
  const double tail = (1 - options.confidence) / 2;
  auto needed = static_cast<size_t>(std::ceil(-std::log2(tail)));
  if (pairs.size() < needed) result.pairs_missing = needed - pairs.size();
  if (pairs.empty()) return result;
  std::vector<double> logs;
  for (const TimePair& pair : pairs) {
    CB_CHECK(pair.a > 0 && pair.b > 0, "times are positive");
    logs.push_back(std::log(pair.a / pair.b));
  }
  std::vector<double> averages = walsh_averages(logs);
  result.ratio = std::exp(*median(averages));
  auto critical = critical_rank_sum(pairs.size(), tail);
  if (!critical) return result;
  result.interval =
      Interval{std::exp(averages[*critical]), std::exp(averages[averages.size() - 1 - *critical])};
  result.comparison = judge(result.ratio, *result.interval, options.tolerance);
  return result;
}

}  // namespace cb::metrics
