// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/html/quantity.hpp>
#include <frugal/html/scale.hpp>
#include <frugal/html/series.hpp>
#include <frugal/store/html_text.hpp>
#include <frugal/store/json_text.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <iterator>
#include <limits>
#include <map>
#include <string>
#include <string_view>
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

struct ChartLine {
  std::string name;
  std::vector<Point> points;
  std::size_t colour = 0;  ///< of the page's eight
  bool dashed = false;     ///< tells lines apart without colours
};

struct Chart {
  std::string title;
  Unit unit = Unit::plain;
  std::vector<ChartLine> lines{};
  std::vector<Axis> axes{Axis::step};
  bool from_zero = false;           ///< for amounts, whose height is compared
  bool may_be_logarithmic = false;  ///< if the values span more than a factor of 30
  std::vector<Point> marks{};       ///< interruptions: dotted lines
};

/// Draws one chart as a figure: one picture per axis, a slider for keyboard and touch that the
/// page's script fills, and a table of its values.
class ChartWriter {
 public:
  ChartWriter(std::string& out, Chart const& chart, std::size_t number)
      : out_(out), chart_(chart), id_("c" + std::to_string(number)) {}

  void write() {
    out_ += "<figure class=\"chart\" id=\"" + id_ + "\">\n<figcaption><h3>" +
            as_html(chart_.title) + "</h3>";
    if (logarithmic()) out_ += "<span class=\"note\">logarithmic</span>";
    out_ += "</figcaption>\n";
    legend();
    for (Axis const axis : chart_.axes) picture(axis);
    // The script shows these.
    out_ +=
        "<div class=\"probe\" hidden><input type=\"range\" min=\"0\" max=\"0\" value=\"0\" "
        "aria-label=\"" +
        as_html(chart_.title) +
        // A screen reader hears the slider's text. All outputs change with the axis: as live
        // regions, which they are by default, each would be read out.
        ": point to read\"><output aria-live=\"off\"></output></div>\n";
    table();
    data();
    out_ += "</figure>\n";
  }

 private:
  static constexpr double width = 400, height = 216, left = 52, top = 10, bottom = 40;

  static std::string as_html(std::string_view text) { return detail::as_html(text); }
  static std::string coordinate(double value) {
    std::array<char, 32> text;
    std::snprintf(text.data(), text.size(), "%.1f", value);
    std::string_view digits = text.data();
    if (digits.ends_with(".0")) digits.remove_suffix(2);
    return std::string(digits == "-0" ? "0" : digits);
  }

  /// The values' range.
  std::pair<double, double> range() const {
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (ChartLine const& line : chart_.lines) {
      for (Point const& point : line.points) {
        low = std::min(low, point.value);
        high = std::max(high, point.value);
      }
    }
    return {low, high};
  }
  bool logarithmic() const {
    auto const [low, high] = range();
    return chart_.may_be_logarithmic && low > 0 && high / low > 30;
  }
  Scale vertical() const {
    auto [low, high] = range();
    if (chart_.from_zero && low <= high) {
      low = std::min(low, 0.0);
      high = std::max(high, 0.0);
    }
    return {low, high, chart_.unit, 4, true, logarithmic()};
  }
  Scale horizontal(Axis axis) const {
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

  bool labelled() const { return chart_.lines.size() > 1 && chart_.lines.size() <= 4; }
  double right() const { return labelled() ? 84 : 16; }

  void legend() {
    if (chart_.lines.size() < 2) {
      if (!chart_.lines.empty() && !chart_.lines[0].points.empty()) {
        out_ += "<p class=\"legend\">last <b>" +
                value_text(chart_.lines[0].points.back().value, chart_.unit) + "</b></p>\n";
      }
      return;
    }
    out_ += "<ul class=\"legend\">";
    for (ChartLine const& line : chart_.lines) {
      out_ +=
          "<li><svg class=\"key\" viewBox=\"0 0 22 6\" aria-hidden=\"true\"><path d=\"M0 3H22\"" +
          stroke(line) + "/></svg>" + as_html(line.name) + " <b>" +
          (line.points.empty() ? std::string(no_value)
                               : value_text(line.points.back().value, chart_.unit)) +
          "</b></li>";
    }
    out_ += "</ul>\n";
  }

  static std::string stroke(ChartLine const& line) {
    return " class=\"line s" + std::to_string(line.colour % 8) + (line.dashed ? " dashed\"" : "\"");
  }

  void picture(Axis axis) {
    Scale const x = horizontal(axis), y = vertical();
    double const end = width - right(), floor = height - bottom;
    auto const at_x = [&](double value) { return left + x.at(value) * (end - left); };
    auto const at_y = [&](double value) { return floor - y.at(value) * (floor - top); };
    std::string const id = id_ + "-" + id_of(axis);
    out_ += "<svg class=\"plot by-" + std::string(id_of(axis)) + "\" viewBox=\"0 0 " +
            coordinate(width) + " " + coordinate(height) + "\" role=\"img\" aria-labelledby=\"" +
            id + "-t " + id + "-d\" data-axis=\"" + id_of(axis) + "\" data-x=\"" + number(x.low()) +
            " " + number(x.high()) + " " + coordinate(left) + " " + coordinate(end) +
            "\" data-y=\"" + number(y.low()) + " " + number(y.high()) + " " + coordinate(floor) +
            " " + coordinate(top) + (y.logarithmic() ? " 1" : " 0") + "\">\n" + "<title id=\"" +
            id + "-t\">" + as_html(chart_.title) + " over " + name_of(axis) +
            "</title>\n<desc id=\"" + id + "-d\">" + description(axis) + "</desc>\n";
    for (double const tick : y.ticks()) {
      std::string const height_of = coordinate(at_y(tick));
      out_ += "<path class=\"grid\" d=\"M" + coordinate(left) + " " + height_of + "H" +
              coordinate(end) + "\"/><text class=\"tick\" x=\"" + coordinate(left - 6) + "\" y=\"" +
              coordinate(at_y(tick) + 4) + "\" text-anchor=\"end\">" + y.label(tick) + "</text>\n";
    }
    out_ += "<path class=\"axis\" d=\"M" + coordinate(left) + " " + coordinate(floor) + "H" +
            coordinate(end) + "\"/>\n";
    for (double const tick : x.ticks()) {
      out_ += "<text class=\"tick\" x=\"" + coordinate(at_x(tick)) + "\" y=\"" +
              coordinate(floor + 15) + "\" text-anchor=\"middle\">" + x.label(tick) + "</text>\n";
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
      if (!d.empty()) out_ += "<path d=\"" + d + "\"" + stroke(line) + "/>" + dots + "\n";
    }
    if (labelled()) labels(at_y, end);
    out_ += "</svg>\n";
  }

  /// Each line's name at its end; names that would overlap move apart.
  template <class AtY>
  void labels(AtY const& at_y, double end) {
    std::vector<std::pair<double, ChartLine const*>> places;
    for (ChartLine const& line : chart_.lines) {
      if (!line.points.empty()) places.emplace_back(at_y(line.points.back().value) + 4, &line);
    }
    std::sort(places.begin(), places.end());
    double const apart = 14, lowest = height - bottom + 2;
    for (std::size_t i = 1; i < places.size(); ++i) {
      places[i].first = std::max(places[i].first, places[i - 1].first + apart);
    }
    double limit = lowest;
    for (std::size_t i = places.size(); i-- > 0; limit = places[i].first - apart) {
      places[i].first = std::min(places[i].first, limit);
      if (i == 0) break;
    }
    for (auto const& [where, line] : places) {
      out_ += "<text class=\"label f" + std::to_string(line->colour % 8) + "\" x=\"" +
              coordinate(end + 6) + "\" y=\"" + coordinate(where) + "\">" +
              as_html(shortened(line->name)) + "</text>\n";
    }
  }

  static std::string shortened(std::string const& name) { return detail::beginning(name, 11); }

  std::string description(Axis axis) const {
    std::string text;
    for (ChartLine const& line : chart_.lines) {
      if (line.points.empty()) continue;
      auto const [low, high] =
          std::minmax_element(line.points.begin(), line.points.end(),
                              [](Point const& a, Point const& b) { return a.value < b.value; });
      auto const value = [&](Point const& point) { return value_text(point.value, chart_.unit); };
      text += as_html(line.name) + ": from " + value(line.points.front()) + " to " +
              value(line.points.back()) + "; lowest " + value(*low) + ", highest " + value(*high) +
              ". ";
    }
    return text + "The slider and the table below have the values" +
           (axis == Axis::step ? "." : " by the same axis.");
  }

  /// At most 24 rows for each line, spread evenly, with its last point.
  void table() {
    constexpr std::size_t rows = 24;
    struct Row {
      Point at;
      std::vector<double> values;
    };
    std::map<double, Row> all;
    std::size_t column = 0;
    for (ChartLine const& line : chart_.lines) {
      std::size_t const count = line.points.size(), shown = std::min(count, rows);
      for (std::size_t i = 0; i < shown; ++i) {
        Point const& point = line.points[shown == 1 ? 0 : i * (count - 1) / (shown - 1)];
        Row& row = all.try_emplace(point.step, Row{point, {}}).first->second;
        row.values.resize(chart_.lines.size(), std::numeric_limits<double>::quiet_NaN());
        row.values[column] = point.value;
      }
      ++column;
    }
    bool const money =
        std::find(chart_.axes.begin(), chart_.axes.end(), Axis::dollars) != chart_.axes.end();
    out_ +=
        "<details><summary>Values</summary>\n<div class=\"scroll\" role=\"region\" "
        "tabindex=\"0\" aria-label=\"Values: " +
        as_html(chart_.title) +
        "\"><table><thead><tr><th scope=\"col\">step</th><th scope=\"col\">time</th>";
    if (money) out_ += "<th scope=\"col\">dollars</th>";
    for (ChartLine const& line : chart_.lines) {
      out_ += "<th scope=\"col\">" + as_html(line.name) + "</th>";
    }
    out_ += "</tr></thead><tbody>\n";
    for (auto const& [at, row] : all) {
      out_ += "<tr><td>" + value_text(at, Unit::count) + "</td><td>" + time_text(row.at.seconds) +
              "</td>";
      if (money) out_ += "<td>" + money_text(row.at.dollars) + "</td>";
      for (double const value : row.values) {
        out_ += "<td>" + value_text(value, chart_.unit) + "</td>";
      }
      out_ += "</tr>\n";
    }
    out_ += "</tbody></table></div></details>\n";
  }

  /// The values for the script, as JSON without "<": no text in it can end the element.
  void data() {
    static constexpr std::array units{"plain", "count", "percent", "bytes", "dollars", "seconds"};
    std::string json = "{\"unit\":\"" + std::string(units[static_cast<std::size_t>(chart_.unit)]) +
                       "\",\"lines\":[";
    for (ChartLine const& line : chart_.lines) {
      json += json.back() == '[' ? "{\"name\":" : ",{\"name\":";
      detail::append_json(json, detail::as_utf8(line.name));
      json += ",\"colour\":" + std::to_string(line.colour % 8);
      for (Axis const axis : chart_.axes) {
        json += ",\"" + std::string(id_of(axis)) + "\":";
        list(json, line, [&](Point const& point) { return along(axis, point); });
      }
      json += ",\"value\":";
      list(json, line, [](Point const& point) { return point.value; });
      json += "}";
    }
    json += "]}";
    for (std::size_t at = 0; (at = json.find('<', at)) != json.npos;) {
      json.replace(at, 1, "\\u003c");
    }
    out_ += "<script type=\"application/json\">" + json + "</script>\n";
  }

  template <class Value>
  static void list(std::string& json, ChartLine const& line, Value const& value) {
    json += '[';
    for (Point const& point : line.points) {
      if (json.back() != '[') json += ',';
      json += number(value(point));
    }
    json += ']';
  }
  /// JSON, with the digits that a reader can use.
  static std::string number(double value) {
    if (!std::isfinite(value)) return "null";
    std::array<char, 32> text;
    std::snprintf(text.data(), text.size(), "%.7g", value);
    return text.data();
  }

  std::string& out_;
  Chart const& chart_;
  std::string id_;
};

}  // namespace frugal::html
