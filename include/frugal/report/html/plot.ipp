// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/html/plot.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/inline.hpp>
#include <frugal/report/html/quantity.hpp>
#include <frugal/report/html/series.hpp>

#include <cstdint>
#include <limits>
#include <string_view>

namespace frugal::html {

FRUGAL_INLINE std::string json_number(double value) {
  if (!std::isfinite(value)) return "null";
  bool const whole = std::abs(value) < 0x1p53 && value == std::trunc(value);
  return whole ? std::to_string(static_cast<std::int64_t>(value)) : detail::general(value, 7);
}

FRUGAL_INLINE void Plot::write(Axis axis) const {
  Scale const x = horizontal(axis), y = vertical();
  double const end = width - right(), floor = height - bottom;
  auto const at_x = [&](double value) { return left + x.at(value) * (end - left); };
  auto const at_y = [&](double value) { return floor - y.at(value) * (floor - top); };
  std::string const id = id_ + "-" + id_of(axis);
  out_ += "<svg class=\"plot by-" + std::string(id_of(axis)) + (labelled() ? " labelled" : "") +
          "\" viewBox=\"0 0 " + coordinate(width) + " " + coordinate(height) +
          "\" role=\"img\" aria-labelledby=\"" + id + "-t " + id + "-d\" data-axis=\"" +
          id_of(axis) + "\" data-x=\"" + json_number(x.low()) + " " + json_number(x.high()) + " " +
          coordinate(left) + " " + coordinate(end) + "\" data-y=\"" + json_number(y.low()) + " " +
          json_number(y.high()) + " " + coordinate(floor) + " " + coordinate(top) +
          (y.logarithmic() ? " 1" : " 0") + "\">\n" + "<title id=\"" + id + "-t\">" +
          detail::as_html(chart_.title) + " over " + name_of(axis) + "</title>\n<desc id=\"" + id +
          "-d\">" + description(axis) + "</desc>\n";
  for (double const tick : y.ticks()) {
    std::string const height_of = coordinate(at_y(tick));
    out_ += "<path class=\"grid\" d=\"M" + coordinate(left) + " " + height_of + "H" +
            coordinate(end) + "\"/><text class=\"tick\" x=\"" + coordinate(left - 6) + "\" y=\"" +
            coordinate(at_y(tick) + 4) + "\" text-anchor=\"end\">" + y.label(tick) + "</text>\n";
  }
  out_ += "<path class=\"axis\" d=\"M" + coordinate(left) + " " + coordinate(floor) + "H" +
          coordinate(end) + "\"/>\n";
  bool every_other = false;
  bool const crowded = is_crowded(x, end - left);
  for (double const tick : x.ticks()) {
    out_ += "<text class=\"tick" + std::string(every_other ? " other" : "") + "\" x=\"" +
            coordinate(at_x(tick)) + "\" y=\"" + coordinate(floor + 16) +
            "\" text-anchor=\"middle\">" + x.label(tick) + "</text>\n";
    every_other = crowded && !every_other;
  }
  out_ += "<text class=\"tick unit\" x=\"" + coordinate((left + end) / 2) + "\" y=\"" +
          coordinate(height - 6) + "\" text-anchor=\"middle\">" + name_of(axis) + "</text>\n";
  for (Point const& mark : chart_.marks) {
    double const where = along(axis, mark);
    if (!std::isfinite(where) || where > x.high()) continue;
    out_ += "<path class=\"mark\" d=\"M" + coordinate(at_x(where)) + " " + coordinate(top) + "V" +
            coordinate(floor) + "\"/>\n";
  }
  for (ChartLine const& line : chart_.lines) {
    std::string d, before, dots;
    for (Point const& point : line.points) {
      double const where = along(axis, point);
      if (!std::isfinite(where)) continue;
      std::string const place = coordinate(at_x(where)) + " " + coordinate(at_y(point.value));
      if (place == before) continue;
      d += (d.empty() ? "M" : "L") + place;
      before = place;
      if (line.points.size() <= 24) {
        dots += "<circle class=\"dot s" + std::to_string(line.colour % 8) + "\" cx=\"" +
                coordinate(at_x(where)) + "\" cy=\"" + coordinate(at_y(point.value)) +
                "\" r=\"2.5\"/>";
      }
    }
    if (d.empty()) continue;
    out_ += "<path d=\"" + d + "\" class=\"" + class_of(line) + "\"/>" + dots + "\n";
  }
  if (labelled()) labels(at_y, end);
  out_ += "</svg>\n";
}

FRUGAL_INLINE std::string Plot::coordinate(double value) {
  std::string const text = detail::fixed(value, 1);
  std::string_view digits = text;
  if (digits.ends_with(".0")) digits.remove_suffix(2);
  return std::string(digits == "-0" ? "0" : digits);
}

FRUGAL_INLINE Scale Plot::vertical() const {
  auto [low, high] = range_of(chart_);
  if (chart_.from_zero && low <= high) {
    low = std::min(low, 0.0);
    high = std::max(high, 0.0);
  }
  return {low, high, chart_.unit, 4, true, is_logarithmic(chart_)};
}

FRUGAL_INLINE Scale Plot::horizontal(Axis axis) const {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (ChartLine const& line : chart_.lines) {
    for (Point const& point : line.points) {
      double const x = along(axis, point);
      if (!std::isfinite(x)) continue;
      low = std::min(low, x);
      high = std::max(high, x);
    }
  }
  // A run begins at 0.
  if (low > 0) low = 0;
  return {low, high, unit_of(axis), 4, false};
}

FRUGAL_INLINE bool Plot::is_crowded(Scale const& scale, double room) {
  double needed = 0;
  for (double const tick : scale.ticks()) {
    needed += 9.2 * static_cast<double>(scale.label(tick).size()) + 12;
  }
  return needed > room;
}

FRUGAL_INLINE std::string Plot::description(Axis axis) const {
  std::string text;
  for (ChartLine const& line : chart_.lines) {
    if (line.points.empty()) continue;
    auto const [low, high] =
        std::minmax_element(line.points.begin(), line.points.end(),
                            [](Point const& a, Point const& b) { return a.value < b.value; });
    auto const value = [&](Point const& point) { return value_text(point.value, chart_.unit); };
    text += detail::as_html(line.name) + ": from " + value(line.points.front()) + " to " +
            value(line.points.back()) + "; lowest " + value(*low) + ", highest " + value(*high) +
            ". ";
  }
  return text + "The slider and the table below have the values" +
         (axis == Axis::step ? "." : " by the same axis.");
}

}  // namespace frugal::html
