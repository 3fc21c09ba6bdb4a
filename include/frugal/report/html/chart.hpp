// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/html_page.hpp>
#include <frugal/report/html/quantity.hpp>
#include <frugal/report/html/series.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal::html {

/// A horizontal axis: what of a point lies on it.
struct Axis {
  std::string id;  ///< "step", "seconds", "dollars": charts of one section share the choice of one
  std::string name;
  Unit unit = Unit::count;
  double Point::* of = &Point::step;
  bool loose =
      false;  ///< ends at ticks, and is logarithmic if the values span more than a factor of 30
  std::vector<std::pair<double, std::string>>
      ticks{};  ///< instead of round numbers: a factor apart
};
inline Axis step_axis() { return {"step", "step", Unit::count, &Point::step}; }
inline Axis seconds_axis() { return {"seconds", "training time", Unit::seconds, &Point::seconds}; }
inline Axis dollars_axis() { return {"dollars", "dollars spent", Unit::dollars, &Point::dollars}; }

/// One line of a chart.
struct ChartLine {
  std::string name{};
  std::vector<Point> points{};
  std::size_t color = 0;  ///< of the page's eight; a ninth one has other dashes

  // In a chart with a legend of its own:
  std::string kind{};                 ///< "best", "last", "edge", or one of the others
  std::vector<std::string> titles{};  ///< under the pointer: of the line, or of each point
  double dot = 0;                     ///< radius of a spot at each point
  bool path = true;                   ///< spots alone
};

struct LegendKey {
  std::string kind, name;
  bool spot = false;
};

/// What a chart shows. Without a legend of its own it has one of its lines, a slider that reads its points, and a table
/// of their values.
struct Chart {
  std::string title;
  Unit unit = Unit::plain;
  std::vector<ChartLine> lines{};
  std::vector<Axis> axes{step_axis()};
  std::vector<Axis> columns{};      ///< of the table, behind the axes
  bool from_zero = false;           ///< for amounts, whose height is compared
  bool may_be_logarithmic = false;  ///< if the values span more than a factor of 30
  std::string note{};               ///< next to the title
  std::vector<Point> marks{};       ///< interruptions: dotted lines
  std::vector<LegendKey> legend{};
  std::string id{}, about{};         ///< `about` is for screen readers
  std::vector<std::string> notes{};  ///< below
  std::optional<Table> table{};
};

/// JSON, with the digits that a reader can use: all of a whole number, such as a step.
std::string json_number(double value);

void write_legend(detail::JsonWriter& json, std::vector<LegendKey> const& legend);
void write_texts(detail::JsonWriter& json, std::string_view name,
                 std::vector<std::string> const& texts);
void write_chart(Page& page, Chart const& chart);

}  // namespace frugal::html

#ifndef FRUGAL_COMPILED
#include <frugal/report/html/chart.ipp>
#endif
