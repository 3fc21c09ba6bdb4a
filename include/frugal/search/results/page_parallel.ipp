// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/results/page_parallel.hpp>

#include <frugal/inline.hpp>
#include <frugal/report/html/quantity.hpp>
#include <frugal/report/html/scale.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <variant>

namespace frugal::html {

FRUGAL_INLINE double place_of(Distribution const& of, double value) {
  double low = 0, high = 1;
  bool logs = false;
  if (auto const* const real = std::get_if<Uniform>(&of)) low = real->low, high = real->high;
  if (auto const* const log = std::get_if<LogUniform>(&of)) {
    low = log->low, high = log->high, logs = true;
  }
  if (auto const* const whole = std::get_if<Int>(&of)) {
    low = static_cast<double>(whole->low), high = static_cast<double>(whole->high);
    logs = whole->log;
  }
  if (auto const* const choice = std::get_if<Choice>(&of)) {
    return (value + 0.5) / static_cast<double>(choice->names.size());
  }
  if (low == high) return 0.5;
  if (logs) low = std::log(low), high = std::log(high), value = std::log(value);
  return std::clamp((value - low) / (high - low), 0.0, 1.0);
}

FRUGAL_INLINE std::vector<PlotTick> axis_ticks(Distribution const& of) {
  std::vector<PlotTick> ticks;
  if (auto const* const choice = std::get_if<Choice>(&of)) {
    std::size_t const every = choice->names.size() / 16 + 1;
    for (std::size_t i = 0; i < choice->names.size(); i += every) {
      ticks.push_back(
          {place_of(of, static_cast<double>(i)), detail::beginning(choice->names[i], 15)});
    }
    return ticks;
  }
  double low = 0, high = 1;
  bool logs = std::holds_alternative<LogUniform>(of);
  Unit unit = Unit::plain;
  if (auto const* const real = std::get_if<Uniform>(&of)) low = real->low, high = real->high;
  if (auto const* const log = std::get_if<LogUniform>(&of)) low = log->low, high = log->high;
  if (auto const* const whole = std::get_if<Int>(&of)) {
    low = static_cast<double>(whole->low), high = static_cast<double>(whole->high);
    logs = whole->log;
    unit = Unit::count;
  }
  ticks = {{0, short_number(low)}, {1, short_number(high)}};
  if (low == high) return {{0.5, short_number(low)}};
  Scale const scale(low, high, unit, 4, false, logs);
  for (double const tick : scale.ticks()) {
    double const at = tick < low || tick > high ? 0 : place_of(of, tick);
    // The ends have their labels.
    if (at > 0.09 && at < 0.91) ticks.push_back({at, scale.label(tick)});
  }
  return ticks;
}

}  // namespace frugal::html

namespace frugal::html::parts {

FRUGAL_INLINE std::vector<ParallelAxis> parallel_axes(SearchResults const& of,
                                                      std::vector<std::size_t> const& trials) {
  std::vector<ParallelAxis> axes;
  auto const add = [&](std::string const& name, Distribution const& values, auto const& read) {
    // An axis on which all are alike shows nothing.
    auto const count = count_of(values);
    if (count && *count == 1) return;
    ParallelAxis& axis = axes.emplace_back(ParallelAxis{name, 0, axis_ticks(values), {}});
    if (std::holds_alternative<Choice>(values)) axis.band = 0.6 / static_cast<double>(*count);
    for (std::size_t const number : trials) {
      std::optional<double> const value = read(of.history.trials[number].candidate);
      axis.places.push_back(value ? std::optional(place_of(values, *value)) : std::nullopt);
    }
  };
  add(SearchDomain::recipe_parameter, of.domain.recipe_choice(), [](Candidate const& candidate) {
    return std::optional(static_cast<double>(candidate.recipe));
  });
  for (std::size_t i = 0; i < of.domain.settings.size(); ++i) {
    add(of.domain.settings[i].name, of.domain.settings[i].values,
        [i](Candidate const& candidate) { return candidate.values[i]; });
  }
  std::vector<double> values;
  for (std::size_t const number : trials) {
    if (auto const value = of.value(of.history.trials[number])) values.push_back(*value);
  }
  if (values.empty()) return axes;
  Scale const scale = objective_scale(values);
  ParallelAxis& axis = axes.emplace_back(ParallelAxis{of.objectives.front().name, 0, {}, {}});
  for (double const tick : scale.ticks()) axis.ticks.push_back({scale.at(tick), scale.label(tick)});
  for (std::size_t const number : trials) {
    auto const value = of.value(of.history.trials[number]);
    axis.places.push_back(value ? std::optional(scale.at(*value)) : std::nullopt);
  }
  return axes;
}

}  // namespace frugal::html::parts

namespace frugal::html {

FRUGAL_INLINE void write_parallel(Page& page, SearchResults const& of, DrawnTrials const& drawn) {
  auto const axes = parts::parallel_axes(of, drawn.numbers);
  if (drawn.numbers.empty() || axes.size() < 2) return;
  constexpr double apart = 130, left = 14, top = 34, bottom = 286;
  double const width = left + apart * static_cast<double>(axes.size() - 1) + 96;
  std::string& out = page.text();
  SearchPlot const figure(out, "parallel", "Settings and " + of.objectives.front().name,
                          direction_text(of.objectives.front()));
  bool const any = drawn.failed_ones < drawn.numbers.size();
  std::vector<std::pair<std::string, std::string>> keys;
  if (of.winner) keys.emplace_back("run best", "winner");
  if (any)
    keys.insert(keys.end(), {{"run q0", "best fifth"},
                             {"run q1", "second"},
                             {"run q2", "third"},
                             {"run q3", "fourth"},
                             {"run q4", "last fifth"}});
  if (drawn.failed_ones > 0) keys.emplace_back("run lost", "failed");
  figure.legend(keys);
  out +=
      "<div class=\"pan\" role=\"region\" tabindex=\"0\" aria-label=\"Settings of the trials\">"
      "<svg" +
      std::string(drawn.is_dense() ? " class=\"dense\"" : "") + " viewBox=\"0 0 " +
      place_text(width) + " 300\" style=\"min-width:" + place_text(width) +
      "px;max-width:" + place_text(1.35 * width) +
      "px\" role=\"img\" aria-labelledby=\"parallel-t parallel-d\"><title "
      "id=\"parallel-t\">Settings of "
      "the trials</title><desc id=\"parallel-d\">" +
      std::to_string(drawn.numbers.size()) +
      " trials, a line each, from axis to axis. The table of trials has the values.</desc>\n";
  auto const x_of = [&](std::size_t axis) { return left + apart * static_cast<double>(axis); };
  auto const y_of = [&](double place) { return bottom - place * (bottom - top); };
  std::map<std::size_t, std::size_t> rank_of;
  std::size_t ranked = 0;
  for (std::size_t const number : of.ranked()) {
    if (of.history.trials[number].state != TrialState::failed) rank_of[number] = ranked++;
  }
  auto const draw = [&](std::size_t place) {
    std::size_t const number = drawn.numbers[place];
    std::string d;
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
      auto at = axes[axis].places[place];
      // By the golden ratio, any few trials are spread evenly.
      double const turn = 0.61803398874989485 * static_cast<double>(number);
      if (at) *at += axes[axis].band * (turn - std::floor(turn) - 0.5);
      if (at) d += (d.empty() ? "M" : "L") + place_text(x_of(axis)) + ' ' + place_text(y_of(*at));
    }
    bool const failed = of.history.trials[number].state == TrialState::failed;
    std::string const kind = of.winner == number ? "run best"
                             : failed            ? "run lost"
                                      : "run q" + std::to_string(5 * rank_of[number] / ranked);
    figure.path(d, kind, trial_title(of, number));
  };
  std::optional<std::size_t> winner;
  // Better lines lie over worse ones. Failed trials are at the end of the list.
  for (std::size_t place = drawn.numbers.size(); place-- > 0;) {
    if (of.winner == drawn.numbers[place]) {
      winner = place;
    } else {
      draw(place);
    }
  }
  if (winner) draw(*winner);
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    std::string const x = place_text(x_of(axis));
    out += "<path class=\"axis\" d=\"M" + x + ' ' + place_text(top) + 'V' + place_text(bottom) +
           "\"/><text class=\"name\" x=\"" + place_text(x_of(axis) + (axis == 0 ? -6 : 0)) +
           "\" y=\"14\" text-anchor=\"" + (axis == 0 ? "start" : "middle") + "\">" +
           detail::as_html(detail::beginning(axes[axis].name, 16)) + "</text>\n";
    for (PlotTick const& tick : axes[axis].ticks) {
      out += "<text class=\"tick\" x=\"" + place_text(x_of(axis) + 5) + "\" y=\"" +
             place_text(y_of(tick.at) + 4) + "\">" + detail::as_html(tick.label) + "</text>\n";
    }
  }
  out += "</svg></div>\n";
  if (any)
    page.paragraph(
        "Colours are ranks: complete trials come first, then those that trained longer. A line "
        "skips "
        "the axes of "
        "settings that its recipe does not have.",
        "note");
  if (std::string const note = drawn.note(); !note.empty()) page.paragraph(note, "note");
  figure.end_figure();
}

}  // namespace frugal::html
