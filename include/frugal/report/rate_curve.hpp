// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include <frugal/base/number_texts.hpp>
#include <frugal/inline.hpp>

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
  FRUGAL_INLINE double add(double loss) {
    mean_ = keep_ * mean_ + (1 - keep_) * loss;
    share_ *= keep_;
    return mean_ / (1 - share_);
  }

 private:
  double keep_;
  double mean_ = 0;
  double share_ = 1;
};

/// The point with the steepest descent of the smoothed loss, ignoring the first tenth of the
/// points, in which the smoothing has not settled. The slope is a least-squares fit over the
/// surrounding tenth of the points: that of two neighbours would mostly show the difference between
/// batches.
FRUGAL_INLINE std::optional<double> steepest(std::vector<RatePoint> const& points) {
  std::size_t const half = std::max<std::size_t>(points.size() / 20, 1);
  std::optional<double> rate;
  double lowest = 0;
  for (std::size_t i = std::max(points.size() / 10, half); i + half < points.size(); ++i) {
    double slope = 0;  // up to a constant factor
    for (std::size_t k = 1; k <= half; ++k) {
      slope += static_cast<double>(k) * (points[i + k].smoothed - points[i - k].smoothed);
    }
    if (slope >= lowest) continue;
    lowest = slope;
    rate = points[i].rate;
  }
  return rate;
}

/// Rows of text, highest loss first; a value above the range is drawn as '^' in the first row.
FRUGAL_INLINE std::vector<std::string> drawn(std::vector<RatePoint> const& points, std::size_t rows,
                                             std::size_t columns) {
  double lowest = std::numeric_limits<double>::infinity();
  for (RatePoint const& point : points) lowest = std::min(lowest, point.smoothed);
  // A diverged loss would squeeze everything else into one row.
  double highest = points.front().smoothed;
  for (RatePoint const& point : points) {
    if (point.smoothed == lowest) break;
    highest = std::max(highest, point.smoothed);
  }
  highest += 0.1 * (highest - lowest);
  std::vector<std::string> picture(rows, std::string(columns, ' '));
  for (std::size_t i = 0; i < points.size(); ++i) {
    std::size_t const column = points.size() == 1 ? 0 : i * (columns - 1) / (points.size() - 1);
    double const height = highest > lowest ? (points[i].smoothed - lowest) / (highest - lowest) : 0;
    if (height > 1) {
      picture[0][column] = '^';
    } else {
      auto const up = static_cast<std::size_t>(std::lround(height * static_cast<double>(rows - 1)));
      picture[rows - 1 - up][column] = '*';
    }
  }
  for (std::size_t row = 0; row < rows; ++row) {
    std::string label;
    if (row == 0) label = watch::short_number(highest);
    if (row == rows - 1) label = watch::short_number(lowest);
    picture[row] =
        std::string(9 - std::min<std::size_t>(label.size(), 9), ' ') + label + " |" + picture[row];
  }
  return picture;
}

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
