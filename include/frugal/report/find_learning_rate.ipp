// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/find_learning_rate.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/inline.hpp>

#include <limits>

namespace frugal::detail {

FRUGAL_INLINE double Smoothing::add(double loss) {
  mean_ = keep_ * mean_ + (1 - keep_) * loss;
  share_ *= keep_;
  return mean_ / (1 - share_);
}

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

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE double RateRange::rate(std::uint64_t step) const {
  double const share = static_cast<double>(step) / static_cast<double>(steps - 1);
  return from * std::pow(to / from, share);
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE void require_range(RateRange const& range, double lr) {
  auto const refuse = [](std::string what, std::string why, std::string fix) {
    throw SettingsError({.what = std::move(what),
                         .where = "find_learning_rate",
                         .why = std::move(why),
                         .fix = std::move(fix)});
  };
  if (!(range.from > 0 && range.to > range.from && std::isfinite(range.to))) {
    refuse("the range is from " + detail::general(range.from, 6) + " to " +
               detail::general(range.to, 6),
           "rates are positive, and grow", "Give 0 < from < to, such as 1e-7 and 10.");
  }
  if (range.steps < 10) {
    refuse("the range test has " + std::to_string(range.steps) + " steps", "so few show no curve",
           "Give 10 steps or more; 100 is the default.");
  }
  if (!(range.smoothing >= 0 && range.smoothing < 1)) {
    refuse("smoothing is " + detail::general(range.smoothing, 6), "it is a share that is kept",
           "Give a number from 0 up to, but not including, 1.");
  }
  if (!(range.runs_away > 1)) {
    refuse("runs_away is " + detail::general(range.runs_away, 6),
           "the lowest loss would have run away", "Give more than 1; 4 is the default.");
  }
  if (!(lr > 0)) {
    refuse("the optimizer's lr is " + detail::general(lr, 6),
           "the rates of its groups are multiples of it", "Give it more than 0.");
  }
}

}  // namespace frugal::detail
