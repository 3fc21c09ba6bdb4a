// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/results/page_plot.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/inline.hpp>
#include <frugal/report/html/quantity.hpp>
#include <frugal/report/html/series.hpp>

#include <algorithm>
#include <cmath>

namespace frugal::html {

FRUGAL_INLINE std::string place_text(double value) {
  std::string const text = detail::fixed_short(value, 1);
  return text == "-0" ? "0" : text;
}

FRUGAL_INLINE DrawnTrials::DrawnTrials(SearchResults const& of) {
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

FRUGAL_INLINE std::string DrawnTrials::note() const {
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

FRUGAL_INLINE std::size_t DrawnTrials::add(std::vector<std::size_t> const& from) {
  std::size_t const count = std::min(from.size(), most_of_a_kind);
  for (std::size_t i = 0; i < count; ++i) numbers.push_back(from[i * from.size() / count]);
  return count;
}

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

FRUGAL_INLINE Scale objective_scale(std::vector<double> values, int wanted) {
  std::erase_if(values, [](double value) { return std::abs(value) > Series::largest; });
  if (values.empty()) return {0, 1, Unit::plain, wanted, true};
  auto const [low, high] = std::minmax_element(values.begin(), values.end());
  return {*low, *high, Unit::plain, wanted, true, *low > 0 && *high / *low > 30};
}

FRUGAL_INLINE void SearchPlot::legend(
    std::vector<std::pair<std::string, std::string>> const& keys) const {
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

FRUGAL_INLINE void SearchPlot::begin(std::vector<PlotTick> const& ticks, std::string_view name,
                                     Scale const& y, std::string_view description,
                                     bool dense) const {
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

FRUGAL_INLINE void SearchPlot::spot(double x, double y, std::string_view kind,
                                    std::string const& title, double radius) const {
  out_ += "<circle class=\"" + std::string(kind) + "\" cx=\"" + place_text(x) + "\" cy=\"" +
          place_text(y) + "\" r=\"" + place_text(radius) + "\"><title>" + title +
          "</title></circle>\n";
}

FRUGAL_INLINE void SearchPlot::path(std::string const& d, std::string_view kind,
                                    std::string const& title) const {
  out_ += "<path class=\"" + std::string(kind) + "\" d=\"" + d + "\"><title>" + title +
          "</title></path>\n";
}

}  // namespace frugal::html
