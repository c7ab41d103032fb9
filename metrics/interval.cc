#include "metrics/interval.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "base/random.h"

namespace cb::metrics {
namespace {

/// Horner's rule; the first coefficient is that of the highest power.
template <size_t n>
double polynomial(const double (&coefficients)[n], double x) {
  double sum = 0;
  for (double coefficient : coefficients) sum = sum * x + coefficient;
  return sum;
}

/// Between the order statistics, linearly.
double quantile(const std::vector<double>& sorted, double p) {
  double at = p * static_cast<double>(sorted.size() - 1);
  auto low = static_cast<size_t>(at);
  size_t high = std::min(low + 1, sorted.size() - 1);
  double weight = at - static_cast<double>(low);
  return sorted[low] * (1 - weight) + sorted[high] * weight;
}

}  // namespace

std::optional<Interval> bootstrap(size_t count, const Statistic& statistic,
                                  const BootstrapOptions& options) {
  if (count == 0 || options.resamples == 0) return std::nullopt;
  CounterRandom random(options.seed);
  uint64_t draw = 0;
  std::vector<double> values;
  std::vector<size_t> tasks(count);
  for (size_t i = 0; i < options.resamples; ++i) {
    for (size_t& task : tasks) task = random.below(draw++, count);
    if (auto value = statistic(tasks)) values.push_back(*value);
  }
  if (values.size() * 2 < options.resamples) return std::nullopt;
  std::sort(values.begin(), values.end());
  double tail = (1 - options.confidence) / 2;
  return Interval{quantile(values, tail), quantile(values, 1 - tail)};
}

Interval wilson(uint64_t successes, uint64_t trials, double confidence) {
  if (trials == 0) return {0, 1};
  CB_CHECK(successes <= trials, "a rate is at most 1");
  auto n = static_cast<double>(trials);
  double p = static_cast<double>(successes) / n;
  double z = normal_quantile(1 - (1 - confidence) / 2);
  double middle = (p + z * z / (2 * n)) / (1 + z * z / n);
  double half = z / (1 + z * z / n) * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n));
  return {std::max(0.0, middle - half), std::min(1.0, middle + half)};
}

double normal_quantile(double p) {
  CB_CHECK(p > 0 && p < 1, "a probability between 0 and 1");
  constexpr double kA[] = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                           1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
  constexpr double kB[] = {-5.447609879822406e+01, 1.615858368580409e+02,  -1.556989798598866e+02,
                           6.680131188771972e+01,  -1.328068155288572e+01, 1};
  constexpr double kC[] = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                           -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
  constexpr double kD[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
                           3.754408661907416e+00, 1};
  constexpr double kTail = 0.02425;
  if (p < kTail) {
    double q = std::sqrt(-2 * std::log(p));
    return polynomial(kC, q) / polynomial(kD, q);
  }
  if (p > 1 - kTail) return -normal_quantile(1 - p);
  double q = p - 0.5;
  return q * polynomial(kA, q * q) / polynomial(kB, q * q);
}

}  // namespace cb::metrics
