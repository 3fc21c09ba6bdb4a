// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <frugal/base/html_text.hpp>
#include <frugal/report/html/scale.hpp>
#include <frugal/search/results/results.hpp>

// Parts of the pictures on a search's page: its style, the trials that are drawn, and a frame with axes.
namespace frugal::html {

/// Additions to the page's style (report/html/style.hpp). Colours are its own, or mixed of them. Lines of
/// worse trials are paler: they are there for comparison, and the table of trials has their values.
inline constexpr std::string_view search_style = R"css(<style>
.fixed .by-dollars { display: block; }
.charts.pair { grid-template-columns: repeat(auto-fill, minmax(min(100%, 26rem), 1fr)); }
.run { fill: none; stroke: var(--plan); stroke-linejoin: round; }
.run.last { stroke: var(--s0); stroke-width: 1.6; }
.run.best { stroke: var(--s1); stroke-width: 3; } .spot { fill: var(--plan); fill-opacity: .6; }
.spot.last { fill: var(--s0); fill-opacity: 1; } .spot.best { fill: var(--s1); fill-opacity: 1; }
.edge { fill: none; stroke: var(--s2); stroke-width: 1.8; }
.spot.edged { fill: var(--s2); fill-opacity: 1; } .lost { stroke: var(--bad); stroke-dasharray: 2 3; }
.q0 { stroke: var(--s0); stroke-width: 1.6; }
.q1 { stroke: color-mix(in oklab, var(--s0) 50%, var(--s3)); stroke-opacity: .8; }
.q2 { stroke: var(--s3); stroke-opacity: .55; }
.q3 { stroke: color-mix(in oklab, var(--s1) 60%, var(--s3)); stroke-opacity: .5; }
.q4 { stroke: var(--s6); stroke-opacity: .5; }
.dense .run:not(.best) { stroke-width: .7; stroke-opacity: .45; }
.dense .run.q0, .dense .run.last { stroke-opacity: .7; }
.run:not(.best):hover { stroke: var(--text); stroke-width: 3; stroke-opacity: 1; }
.pan { overflow-x: auto; }
.pan .tick, .pan .name { font-size: 11.5px; paint-order: stroke; stroke: var(--card); stroke-width: 3px; }
.pan .name { fill: var(--text); font-weight: 600; }
.pan svg { display: block; margin: 0 auto; width: 100%; height: auto; } .one { white-space: nowrap; }
.long { display: block; white-space: normal; min-width: 18rem; text-align: left; }
pre { margin: 0; overflow-x: auto; font: .85rem/1.5 ui-monospace, "DejaVu Sans Mono", monospace; }
</style>
)css";

/// 12.3, as SVG wants it.
std::string place_text(double value);

/// The trials that are drawn, the best first: of those without a further rung, and of those that failed, so
/// many as a picture can show.
struct DrawnTrials {
  static constexpr std::size_t most_of_a_kind = 250;

  std::vector<std::size_t> numbers{};
  std::size_t short_ones = 0, short_drawn = 0;  ///< that ended their first rung alone
  std::size_t failed_ones = 0, failed_drawn = 0;

  /// Lines are thin where they are many.
  bool is_dense() const { return numbers.size() > 200; }

  explicit DrawnTrials(SearchResults const& of);

  /// How many are left out, as a sentence; empty if all are drawn.
  std::string note() const;

 private:
  std::size_t add(std::vector<std::size_t> const& from);
};

/// "trial 17: AdamW + BF16, lr 0.0031, accuracy 0.93", as HTML.
std::string trial_title(SearchResults const& of, std::size_t number);

/// The axis of an objective: logarithmic if its values span more than a factor of 30. Values beyond 1e200,
/// whose differences cannot be drawn, are at its end.
Scale objective_scale(std::vector<double> values, int wanted = 4);

/// "higher is better".
inline char const* direction_text(SearchObjective const& of) {
  return of.maximise ? "higher is better" : "lower is better";
}

/// A tick of a horizontal axis, from 0 at its left to 1 at its right.
struct PlotTick {
  double at = 0;
  std::string label{};
};

/// A picture with axes, of the size of the other ones on the page. Its figure begins with it, and goes on
/// after it.
class SearchPlot {
 public:
  /// `id` is unique in the page. Texts are escaped here.
  SearchPlot(std::string& out, std::string const& id, std::string_view title, std::string_view note)
      : out_(out), id_(id), title_(title) {
    out_ += "<figure class=\"chart\" id=\"" + id + "\">\n<figcaption><h3>" +
            detail::as_html(title) + "</h3><span class=\"note\">" + detail::as_html(note) +
            "</span></figcaption>\n";
  }

  /// Class of the key, which is of a line unless it is of a spot, and name.
  void legend(std::vector<std::pair<std::string, std::string>> const& keys) const;

  void begin(std::vector<PlotTick> const& ticks, std::string_view name, Scale const& y,
             std::string_view description, bool dense = false) const;

  static double at_x(double share) { return 70 + share * 314; }
  static double at_y(Scale const& y, double value) { return 176 - y.at(value) * 166; }

  void spot(double x, double y, std::string_view kind, std::string const& title,
            double radius = 2.5) const;
  void path(std::string const& d, std::string_view kind, std::string const& title) const;
  void end() const { out_ += "</svg>\n"; }
  void end_figure() const { out_ += "</figure>\n"; }

 private:
  std::string& out_;
  std::string id_;
  std::string title_;
};

}  // namespace frugal::html

#ifndef FRUGAL_COMPILED
#include <frugal/search/results/page_plot.ipp>
#endif
