// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/html_text.hpp>
#include <frugal/report/html/chart.hpp>
#include <frugal/report/html/scale.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace frugal::html {

/// JSON, with the digits that a reader can use: all of a whole number, such as a step.
std::string json_number(double value);

/// Draws a chart's lines over one axis as SVG, with a title and a description for screen readers.
/// The attributes data-x and data-y are the scales, for the page's script.
class Plot {
 public:
  /// `id` is unique in the page.
  Plot(std::string& out, Chart const& chart, std::string const& id)
      : out_(out), chart_(chart), id_(id) {}

  void write(Axis axis) const;

 private:
  // Room for texts of 14.5, the size in the smallest picture (report/html/style.hpp).
  static constexpr double width = 400, height = 219, left = 70, top = 10, bottom = 43;

  static std::string coordinate(double value);

  Scale vertical() const;
  Scale horizontal(Axis axis) const;

  /// Whether labels do not fit side by side in texts of 14.5. The page's style hides every other
  /// one where the texts are that large.
  static bool is_crowded(Scale const& scale, double room);

  bool labelled() const { return chart_.lines.size() > 1 && chart_.lines.size() <= 4; }
  double right() const { return labelled() ? 100 : 16; }

  /// Each line's name at its end; names that would overlap move apart.
  template <class AtY>
  void labels(AtY const& at_y, double end) const {
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
              detail::as_html(detail::beginning(line->name, 11)) + "</text>\n";
    }
  }

  std::string description(Axis axis) const;

  std::string& out_;
  Chart const& chart_;
  std::string id_;
};

}  // namespace frugal::html

#ifndef FRUGAL_COMPILED
#include <frugal/report/html/plot.ipp>
#endif
