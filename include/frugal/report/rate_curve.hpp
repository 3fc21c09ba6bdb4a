// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include <frugal/base/number_texts.hpp>

namespace frugal {

/// One optimizer step of a range test.
struct RatePoint {
  double rate = 0;  ///< learning rate of the step
  double loss = 0;  ///< loss of its window, before the step
  double smoothed = 0;
};

/// The result of a learning-rate range test: the loss over a learning rate that grows by a constant
/// factor per step. Printing it draws the curve in plain characters.
struct [[nodiscard]] RateCurve {
  std::vector<RatePoint> points;
  bool diverged = false;  ///< stopped before the last rate because the loss had grown too far
  /// The rate at which the smoothed loss falls fastest; nothing if it never falls.
  std::optional<double> suggestion{};
};

namespace detail {

/// Exponential moving average of losses with bias correction (Kingma and Ba, 2015, section 3).
class Smoothing {
 public:
  explicit Smoothing(double keep) : keep_(keep) {}
  double add(double loss);

 private:
  double keep_;
  double mean_ = 0;
  double share_ = 1;
};

/// The point with the steepest descent of the smoothed loss, ignoring the first tenth of the
/// points, in which the smoothing has not settled. The slope is a least-squares fit over the
/// surrounding tenth of the points: that of two neighbours would mostly show the difference between
/// batches.
std::optional<double> steepest(std::vector<RatePoint> const& points);

/// Rows of text, highest loss first; a value above the range is drawn as '^' in the first row.
std::vector<std::string> drawn(std::vector<RatePoint> const& points, std::size_t rows,
                               std::size_t columns);

}  // namespace detail

inline std::ostream& operator<<(std::ostream& out, RateCurve const& curve) {
  constexpr std::size_t rows = 12;
  constexpr std::size_t columns = 60;
  std::string const margin(11, ' ');
  if (curve.points.empty()) return out << "no step was made\n";
  for (std::string const& row : detail::drawn(curve.points, rows, columns)) {
    out << row.substr(0, row.find_last_not_of(' ') + 1) << '\n';
  }
  std::string const first = watch::short_number(curve.points.front().rate);
  std::string const last = watch::short_number(curve.points.back().rate);
  std::string const between(columns - std::min(columns, first.size() + last.size()), ' ');
  out << std::string(10, ' ') << '+' << std::string(columns, '-') << '\n'
      << margin << first << between << last << '\n';
  if (!curve.suggestion) return out << margin << "the loss never falls\n";
  std::size_t column = 0;
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    if (curve.points[i].rate != *curve.suggestion) continue;
    column = i * (columns - 1) / (curve.points.size() - 1);
  }
  return out << margin << std::string(column, ' ') << "^ " << watch::short_number(*curve.suggestion)
             << ": the loss falls fastest\n";
}

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/report/rate_curve.ipp>
#endif
