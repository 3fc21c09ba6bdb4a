// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/html/chart_writer.hpp>

#include <frugal/base/html_text.hpp>
#include <frugal/base/json_writer.hpp>
#include <frugal/inline.hpp>
#include <frugal/report/html/plot.hpp>
#include <frugal/report/html/quantity.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <map>
#include <string_view>
#include <vector>

namespace frugal::html {

FRUGAL_INLINE void ChartWriter::write() const {
  std::string const title = detail::as_html(chart_.title);
  out_ += "<figure class=\"chart\" id=\"" + id_ + "\">\n<figcaption><h3>" + title + "</h3>";
  if (!chart_.note.empty()) {
    out_ += "<span class=\"note\">" + detail::as_html(chart_.note) + "</span>";
  }
  if (is_logarithmic(chart_)) out_ += "<span class=\"note\">logarithmic</span>";
  out_ += "</figcaption>\n";
  legend();
  for (Axis const axis : chart_.axes) Plot(out_, chart_, id_).write(axis);
  // The script shows these. A screen reader hears the slider's text. All outputs change with the
  // axis: as live regions, which they are by default, each would be read out.
  out_ +=
      "<div class=\"probe\" hidden><input type=\"range\" min=\"0\" max=\"0\" value=\"0\" "
      "aria-label=\"" +
      title + ": point to read\"><output aria-live=\"off\"></output></div>\n";
  ChartValues const values(out_, chart_);
  values.table();
  values.json();
  out_ += "</figure>\n";
}

FRUGAL_INLINE void ChartWriter::legend() const {
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
        "<li><svg class=\"key\" viewBox=\"0 0 22 6\" aria-hidden=\"true\"><path d=\"M0 3H22\" "
        "class=\"" +
        class_of(line) + "\"/></svg>" + detail::as_html(line.name) + " <b>" +
        (line.points.empty() ? std::string(no_value)
                             : value_text(line.points.back().value, chart_.unit)) +
        "</b></li>";
  }
  out_ += "</ul>\n";
}

FRUGAL_INLINE void ChartValues::table() const {
  constexpr std::size_t rows = 24;
  Axis const first = chart_.axes.front();
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
      Row& row = all.try_emplace(along(first, point), Row{point, {}}).first->second;
      row.values.resize(chart_.lines.size(), std::numeric_limits<double>::quiet_NaN());
      row.values[column] = point.value;
    }
    ++column;
  }
  auto const has = [&](Axis axis) {
    return std::find(chart_.axes.begin(), chart_.axes.end(), axis) != chart_.axes.end();
  };
  bool const steps = has(Axis::step), money = has(Axis::dollars);
  out_ +=
      "<details><summary>Values</summary>\n<div class=\"scroll\" role=\"region\" "
      "tabindex=\"0\" aria-label=\"Values: " +
      detail::as_html(chart_.title) + "\"><table><thead><tr>";
  if (steps) out_ += "<th scope=\"col\">step</th>";
  out_ += "<th scope=\"col\">time</th>";
  if (money) out_ += "<th scope=\"col\">dollars</th>";
  for (ChartLine const& line : chart_.lines) {
    out_ += "<th scope=\"col\">" + detail::as_html(line.name) + "</th>";
  }
  out_ += "</tr></thead><tbody>\n";
  for (auto const& [place, row] : all) {
    std::string const time = time_text(row.at.seconds);
    out_ += "<tr><th scope=\"row\">" +
            (steps ? value_text(row.at.step, Unit::count) + "</th><td>" + time + "</td>"
                   : time + "</th>");
    if (money) out_ += "<td>" + money_text(row.at.dollars) + "</td>";
    for (double const value : row.values) {
      out_ += "<td>" + value_text(value, chart_.unit) + "</td>";
    }
    out_ += "</tr>\n";
  }
  out_ += "</tbody></table></div></details>\n";
}

FRUGAL_INLINE void ChartValues::json() const {
  static constexpr std::array units{"plain", "count", "percent", "bytes", "dollars", "seconds"};
  detail::JsonWriter values;
  values.object().add("unit", units[static_cast<std::size_t>(chart_.unit)]);
  values.key("lines").array();
  for (ChartLine const& line : chart_.lines) {
    auto const list = [&](std::string_view name, auto const& value) {
      values.key(name).array();
      for (Point const& point : line.points) values.raw(json_number(value(point)));
      values.end();
    };
    values.object().add("name", line.name).add("colour", line.colour % 8);
    for (Axis const axis : chart_.axes) {
      list(id_of(axis), [&](Point const& point) { return along(axis, point); });
    }
    list("value", [](Point const& point) { return point.value; });
    values.end();
  }
  std::string text = values.str();
  for (std::size_t at = 0; (at = text.find('<', at)) != text.npos;) {
    text.replace(at, 1, "\\u003c");
  }
  out_ += "<script type=\"application/json\">" + text + "</script>\n";
}

}  // namespace frugal::html
