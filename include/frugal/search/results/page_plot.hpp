// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <frugal/base/html_text.hpp>
#include <frugal/base/number_text.hpp>
#include <frugal/inline.hpp>
#include <frugal/report/html/quantity.hpp>
#include <frugal/report/html/scale.hpp>
#include <frugal/report/html/series.hpp>
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
FRUGAL_INLINE std::string place_text(double value) {
  std::string const text = detail::fixed_short(value, 1);
  return text == "-0" ? "0" : text;
}

/// The trials that are drawn, the best first: of those without a further rung, and of those that failed, so
/// many as a picture can show.
struct DrawnTrials {
  static constexpr std::size_t most_of_a_kind = 250;

  std::vector<std::size_t> numbers{};
  std::size_t short_ones = 0, short_drawn = 0;  ///< that ended their first rung alone
  std::size_t failed_ones = 0, failed_drawn = 0;

  /// Lines are thin where they are many.
  bool is_dense() const { return numbers.size() > 200; }

  FRUGAL_INLINE explicit DrawnTrials(SearchResults const& of) {
    std::vector<std::size_t> short_trials, failed;
    for (std::size_t const number : of.ranked()) {
      SearchTrial const& trial = of.history.trials[number];
      bool const kept = of.winner == number || of.is_on_front(number) || trial.rungs.size() > 1;
      if (trial.state == TrialState::failed) {
        failed.push_back(number);
      } else if (kept || trial.state == TrialState::complete) {
        numbers.push_back(number);
      } else if (!trial.rungs.empty()) {
        short_trials.push_back(number);
      }
    }
    short_ones = short_trials.size();
    failed_ones = failed.size();
    short_drawn = add(short_trials);
    failed_drawn = add(failed);
  }

  /// How many are left out, as a sentence; empty if all are drawn.
  FRUGAL_INLINE std::string note() const {
    std::string text;
    auto const add_note = [&](std::size_t drawn, std::size_t all, char const* kind) {
      if (drawn == all) return;
      text += (text.empty() ? "" : " ") + std::to_string(drawn) + " of the " + std::to_string(all) +
              " trials that " + kind + " are drawn, spread evenly over their ranks.";
    };
    add_note(short_drawn, short_ones, "ended at their first rung");
    add_note(failed_drawn, failed_ones, "failed");
    return text;
  }

 private:
  FRUGAL_INLINE std::size_t add(std::vector<std::size_t> const& from) {
    std::size_t const count = std::min(from.size(), most_of_a_kind);
    for (std::size_t i = 0; i < count; ++i) numbers.push_back(from[i * from.size() / count]);
    return count;
  }
};

/// "trial 17: AdamW + BF16, lr 0.0031, accuracy 0.93", as HTML.
FRUGAL_INLINE std::string trial_title(SearchResults const& of, std::size_t number) {
  SearchTrial const& trial = of.history.trials[number];
  std::string text = "trial " + std::to_string(number) + ": " + of.label(trial.candidate);
  for (std::size_t m = 0; m < of.objectives.size(); ++m) {
    auto const value = of.value(trial, m);
    if (value) text += ", " + of.objectives[m].name + ' ' + short_number(*value);
  }
  if (trial.state == TrialState::failed) text += ", failed";
  return detail::as_html(text);
}

/// The axis of an objective: logarithmic if its values span more than a factor of 30. Values beyond 1e200,
/// whose differences cannot be drawn, are at its end.
FRUGAL_INLINE Scale objective_scale(std::vector<double> values, int wanted = 4) {
  std::erase_if(values, [](double value) { return std::abs(value) > Series::largest; });
  if (values.empty()) return {0, 1, Unit::plain, wanted, true};
  auto const [low, high] = std::minmax_element(values.begin(), values.end());
  return {*low, *high, Unit::plain, wanted, true, *low > 0 && *high / *low > 30};
}

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
  FRUGAL_INLINE void legend(std::vector<std::pair<std::string, std::string>> const& keys) const {
    out_ += "<ul class=\"legend\">";
    for (auto const& [kind, name] : keys) {
      bool const spot = kind.starts_with("spot");
      out_ += "<li><svg class=\"key\" viewBox=\"0 0 22 6\" aria-hidden=\"true\">" +
              (spot ? "<circle cx=\"11\" cy=\"3\" r=\"3\" class=\"" + kind + "\"/>"
                    : "<path d=\"M0 3H22\" class=\"" + kind + "\"/>") +
              "</svg>" + detail::as_html(name) + "</li>";
    }
    out_ += "</ul>\n";
  }

  FRUGAL_INLINE void begin(std::vector<PlotTick> const& ticks, std::string_view name,
                           Scale const& y, std::string_view description, bool dense = false) const {
    out_ += "<svg class=\"plot" + std::string(dense ? " dense" : "") +
            "\" viewBox=\"0 0 400 219\" role=\"img\" aria-labelledby=\"" + id_ + "-t " + id_ +
            "-d\"><title id=\"" + id_ + "-t\">" + detail::as_html(title_) + "</title><desc id=\"" +
            id_ + "-d\">" + detail::as_html(description) + "</desc>\n";
    for (double const tick : y.ticks()) {
      double const height = at_y(y, tick);
      out_ += "<path class=\"grid\" d=\"M70 " + place_text(height) +
              "H384\"/><text class=\"tick\" x=\"64\" y=\"" + place_text(height + 4) +
              "\" text-anchor=\"end\">" + y.label(tick) + "</text>\n";
    }
    out_ += "<path class=\"axis\" d=\"M70 176H384\"/>\n";
    double needed = 0;
    for (PlotTick const& each : ticks) needed += 9.2 * static_cast<double>(each.label.size()) + 12;
    // The style hides every other one where texts are large, and more ticks than fit have no label.
    std::size_t const every = needed < 600 ? 1 : static_cast<std::size_t>(needed / 400) + 1;
    for (std::size_t i = 0; i < ticks.size(); ++i) {
      if (i % every != 0) continue;
      bool const other = needed > 314 && i / every % 2 == 1;
      // A long label at the right end would leave the picture.
      bool const last = ticks[i].at > 0.95 && ticks[i].label.size() > 2;
      out_ += "<text class=\"tick" + std::string(other ? " other" : "") + "\" x=\"" +
              place_text(last ? 398 : at_x(ticks[i].at)) + "\" y=\"192\" text-anchor=\"" +
              (last ? "end" : "middle") + "\">" + detail::as_html(ticks[i].label) + "</text>\n";
    }
    out_ += "<text class=\"tick unit\" x=\"227\" y=\"213\" text-anchor=\"middle\">" +
            detail::as_html(name) + "</text>\n";
  }

  static double at_x(double share) { return 70 + share * 314; }
  static double at_y(Scale const& y, double value) { return 176 - y.at(value) * 166; }

  FRUGAL_INLINE void spot(double x, double y, std::string_view kind, std::string const& title,
                          double radius = 2.5) const {
    out_ += "<circle class=\"" + std::string(kind) + "\" cx=\"" + place_text(x) + "\" cy=\"" +
            place_text(y) + "\" r=\"" + place_text(radius) + "\"><title>" + title +
            "</title></circle>\n";
  }
  FRUGAL_INLINE void path(std::string const& d, std::string_view kind,
                          std::string const& title) const {
    out_ += "<path class=\"" + std::string(kind) + "\" d=\"" + d + "\"><title>" + title +
            "</title></path>\n";
  }
  void end() const { out_ += "</svg>\n"; }
  void end_figure() const { out_ += "</figure>\n"; }

 private:
  std::string& out_;
  std::string id_;
  std::string title_;
};

}  // namespace frugal::html
