// SPDX-License-Identifier: Apache-2.0
// Whether two samples can come from one distribution. For an equal one each statistic is below 1 in 99 of 100
// pairs of samples; the samples of the tests are the same in every run.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <vector>

namespace frugal_test {

/// The largest distance of the two distribution functions (Kolmogorov and Smirnov), over its bound at 1 %.
inline double distance_of_samples(std::vector<double> one, std::vector<double> other) {
  std::ranges::sort(one);
  std::ranges::sort(other);
  auto const n = static_cast<double>(one.size()), m = static_cast<double>(other.size());
  double most = 0;
  for (std::size_t i = 0, k = 0; i < one.size() && k < other.size();) {
    double const value = std::min(one[i], other[k]);
    // Optuna's numbers are rounded to six digits.
    double const end = value + 2e-5 * std::abs(value);
    while (i < one.size() && one[i] <= end) ++i;
    while (k < other.size() && other[k] <= end) ++k;
    most = std::max(most, std::abs(static_cast<double>(i) / n - static_cast<double>(k) / m));
  }
  return most / (1.628 * std::sqrt((n + m) / (n * m)));
}

/// Chi-squared of the counts of each value, over its bound at 1 % (Wilson and Hilferty's approximation).
/// Values with fewer than 10 in both samples together are counted as one.
inline double distance_of_names(std::vector<double> const& one, std::vector<double> const& other) {
  std::map<double, std::pair<double, double>> counts;
  for (double const each : one) ++counts[each].first;
  for (double const each : other) ++counts[each].second;
  auto const n = static_cast<double>(one.size()), m = static_cast<double>(other.size());
  std::vector<std::pair<double, double>> cells;
  std::pair<double, double> rare{0, 0};
  for (auto const& [value, count] : counts) {
    if (count.first + count.second >= 10) {
      cells.push_back(count);
    } else {
      rare.first += count.first, rare.second += count.second;
    }
  }
  if (rare.first + rare.second > 0) cells.push_back(rare);
  if (cells.size() < 2) return 0;
  double sum = 0;
  for (auto const& [a, b] : cells) {
    double const difference = a * std::sqrt(m / n) - b * std::sqrt(n / m);
    sum += difference * difference / (a + b);
  }
  auto const freedom = static_cast<double>(cells.size() - 1);
  double const root = 1 - 2 / (9 * freedom) + 2.326 * std::sqrt(2 / (9 * freedom));
  return sum / (freedom * root * root * root);
}

}  // namespace frugal_test
