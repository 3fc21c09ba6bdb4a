// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/html/quantity.hpp>
#include <frugal/report/html/series.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace frugal::html {

/// What a chart's horizontal axis counts.
enum class Axis : unsigned char { step, seconds, dollars };

inline double along(Axis axis, Point const& point) {
  return axis == Axis::step ? point.step : axis == Axis::seconds ? point.seconds : point.dollars;
}
inline Unit unit_of(Axis axis) {
  return axis == Axis::step ? Unit::count : axis == Axis::seconds ? Unit::seconds : Unit::dollars;
}
inline char const* name_of(Axis axis) {
  return axis == Axis::step ? "step" : axis == Axis::seconds ? "training time" : "dollars spent";
}
inline char const* id_of(Axis axis) {
  return axis == Axis::step ? "step" : axis == Axis::seconds ? "seconds" : "dollars";
}

/// One line of a chart.
struct ChartLine {
  std::string name;
  std::vector<Point> points;
  std::size_t colour = 0;   ///< of the page's eight
  std::size_t pattern = 0;  ///< of four kinds of dashes, which distinguish lines without colours
};

/// What a chart shows.
struct Chart {
  std::string title;
  Unit unit = Unit::plain;
  std::vector<ChartLine> lines{};
  std::vector<Axis> axes{Axis::step};
  bool from_zero = false;           ///< for amounts, whose height is compared
  bool may_be_logarithmic = false;  ///< if the values span more than a factor of 30
  std::string note{};               ///< next to the title
  std::vector<Point> marks{};       ///< interruptions: dotted lines
};

/// The lowest and the highest value; infinite if there is none.
std::pair<double, double> range_of(Chart const& chart);

/// Whether the vertical axis is logarithmic.
bool is_logarithmic(Chart const& chart);

/// The classes of a line in the page's style.
inline std::string class_of(ChartLine const& line) {
  return "line s" + std::to_string(line.colour % 8) + " d" + std::to_string(line.pattern % 4);
}

}  // namespace frugal::html

#ifndef FRUGAL_COMPILED
#include <frugal/report/html/chart.ipp>
#endif
