// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/html/chart.hpp>

#include <frugal/inline.hpp>

#include <limits>

namespace frugal::html {

FRUGAL_INLINE std::pair<double, double> range_of(Chart const& chart) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (ChartLine const& line : chart.lines) {
    for (Point const& point : line.points) {
      low = std::min(low, point.value);
      high = std::max(high, point.value);
    }
  }
  return {low, high};
}

FRUGAL_INLINE bool is_logarithmic(Chart const& chart) {
  auto const [low, high] = range_of(chart);
  return chart.may_be_logarithmic && low > 0 && high / low > 30;
}

}  // namespace frugal::html
