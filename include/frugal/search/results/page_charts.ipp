// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/results/page_charts.hpp>

#include <frugal/inline.hpp>
#include <frugal/report/html/chart.hpp>
#include <frugal/report/html/chart_writer.hpp>
#include <frugal/report/html/curves.hpp>
#include <frugal/report/html/quantity.hpp>
#include <frugal/report/html/scale.hpp>
#include <frugal/search/results/results.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <variant>

namespace frugal::html {

FRUGAL_INLINE std::string budget_text(SearchResults const& of, std::uint64_t budget) {
  auto const value = static_cast<double>(budget);
  if (of.unit == "seconds") return time_text(value);
  if (of.unit == "dollars") return money_text(value);
  if (of.unit == "cents") return money_text(value / 100);
  return short_number(value);
}

FRUGAL_INLINE std::vector<std::uint64_t> reached_budgets(SearchResults const& of) {
  std::set<std::uint64_t> budgets;
  for (RungCost const& each : rung_costs(of)) budgets.insert(each.budget);
  return {budgets.begin(), budgets.end()};
}

}  // namespace frugal::html

namespace frugal::html::parts {

FRUGAL_INLINE void rung_values(Page& page, SearchResults const& of,
                               std::vector<std::size_t> const& trials,
                               std::vector<std::uint64_t> const& budgets) {
  constexpr std::size_t most = 50;
  std::vector<std::string> head{"trial"};
  for (std::uint64_t const each : budgets) head.push_back(budget_text(of, each));
  std::vector<Page::Row> rows;
  for (std::size_t const number : trials) {
    SearchTrial const& trial = of.history.trials[number];
    if (trial.rungs.size() < 2 || rows.size() == most) continue;
    Page::Row row{std::to_string(number)};
    row.resize(head.size(), no_value);
    for (std::size_t rung = 0; rung < trial.rungs.size(); ++rung) {
      auto const at = std::ranges::find(budgets, of.budget(trial, rung).value_or(0));
      auto const value = of.value(trial, rung, 0);
      if (value && at != budgets.end()) {
        row[static_cast<std::size_t>(at - budgets.begin()) + 1] = short_number(*value);
      }
    }
    rows.push_back(std::move(row));
  }
  page.raw("<details><summary>Values of the best " + std::to_string(rows.size()) + "</summary>\n");
  page.table("Values: " + of.objectives[0].name + " by rung", head, rows);
  page.raw("</details>\n");
}

}  // namespace frugal::html::parts

namespace frugal::html {

FRUGAL_INLINE void write_rung_curves(Page& page, SearchResults const& of,
                                     DrawnTrials const& drawn) {
  std::vector<std::uint64_t> const budgets = reached_budgets(of);
  if (budgets.size() < 2) return;
  // Rungs are a factor apart: logarithms are as far apart as people think of them. 0 has none.
  auto const place = [&](std::uint64_t budget) {
    double const first = std::log1p(static_cast<double>(budgets.front()));
    double const last = std::log1p(static_cast<double>(budgets.back()));
    return (std::log1p(static_cast<double>(budget)) - first) / (last - first);
  };
  std::vector<PlotTick> ticks;
  for (std::uint64_t const each : budgets) ticks.push_back({place(each), budget_text(of, each)});
  std::vector<double> values;
  std::size_t longest = 0;
  for (std::size_t const number : drawn.numbers) {
    SearchTrial const& trial = of.history.trials[number];
    longest = std::max(longest, trial.rungs.size());
    for (std::size_t rung = 0; rung < trial.rungs.size(); ++rung) {
      if (auto const value = of.value(trial, rung, 0)) values.push_back(*value);
    }
  }
  if (longest < 2 || values.empty()) return;
  SearchObjective const& objective = of.objectives.front();
  Scale const y = objective_scale(values);
  SearchPlot const plot(page.text(), "by-rung", capitalised(objective.name + " by rung"),
                        direction_text(objective));
  std::vector<std::pair<std::string, std::string>> keys;
  if (of.winner) keys.emplace_back("run best", "winner");
  keys.insert(keys.end(), {{"run last", "trained up to the last rung"},
                           {"run", "stopped before it"},
                           {"spot", "stopped at its first rung"}});
  plot.legend(keys);
  plot.begin(
      ticks, "budget of the rung" + budget_unit(of), y,
      std::to_string(drawn.numbers.size()) +
          " trials, a line each. The table below has the values of the best ones, and the table of "
          "trials all last ones.",
      drawn.is_dense());
  for (auto each = drawn.numbers.rbegin(); each != drawn.numbers.rend(); ++each) {
    if (of.winner == *each) continue;
    SearchTrial const& trial = of.history.trials[*each];
    bool const complete = trial.state == TrialState::complete;
    std::string d;
    std::size_t points = 0;
    double x_of_last = 0, y_of_last = 0;
    for (std::size_t rung = 0; rung < trial.rungs.size(); ++rung) {
      auto const value = of.value(trial, rung, 0);
      if (!value) continue;
      x_of_last = SearchPlot::at_x(place(of.budget(trial, rung).value_or(0)));
      y_of_last = SearchPlot::at_y(y, *value);
      d += (points++ == 0 ? "M" : "L") + place_text(x_of_last) + ' ' + place_text(y_of_last);
    }
    if (points > 1) plot.path(d, complete ? "run last" : "run", trial_title(of, *each));
    if (points == 1) {
      plot.spot(x_of_last, y_of_last, complete ? "spot last" : "spot", trial_title(of, *each), 1.6);
    }
  }
  if (of.winner) {
    SearchTrial const& trial = of.history.trials[*of.winner];
    std::string d;
    std::vector<std::pair<double, double>> dots;
    for (std::size_t rung = 0; rung < trial.rungs.size(); ++rung) {
      auto const value = of.value(trial, rung, 0);
      if (!value) continue;
      dots.emplace_back(SearchPlot::at_x(place(of.budget(trial, rung).value_or(0))),
                        SearchPlot::at_y(y, *value));
      d += (d.empty() ? "M" : "L") + place_text(dots.back().first) + ' ' +
           place_text(dots.back().second);
    }
    if (dots.size() > 1) plot.path(d, "run best", trial_title(of, *of.winner));
    for (auto const& [x, height] : dots) {
      plot.spot(x, height, "spot best", trial_title(of, *of.winner), 3);
    }
  }
  plot.end();
  if (std::string const note = drawn.note(); !note.empty()) page.paragraph(note, "note");
  parts::rung_values(page, of, drawn.numbers, budgets);
  plot.end_figure();
}

FRUGAL_INLINE void write_objectives(Page& page, SearchResults const& of, DrawnTrials const& drawn) {
  if (of.objectives.size() < 2) return;
  struct Spot {
    double x = 0, y = 0;
    std::size_t number = 0;
  };
  std::vector<Spot> spots;
  std::vector<double> first, second;
  for (std::size_t const number : drawn.numbers) {
    auto const x = of.value(of.history.trials[number], 0),
               y = of.value(of.history.trials[number], 1);
    if (!x || !y) continue;
    spots.push_back({*x, *y, number});
    first.push_back(*x);
    second.push_back(*y);
  }
  if (spots.empty()) return;
  Scale const x = objective_scale(first), y = objective_scale(second);
  std::vector<PlotTick> ticks;
  for (double const tick : x.ticks()) ticks.push_back({x.at(tick), x.label(tick)});
  SearchPlot const plot(page.text(), "objectives",
                        capitalised(of.objectives[1].name + " against " + of.objectives[0].name),
                        "better: " + std::string(of.objectives[0].maximise ? "right" : "left") +
                            " and " + (of.objectives[1].maximise ? "up" : "down"));
  std::vector<std::pair<std::string, std::string>> keys{{"edge", "Pareto front"}};
  if (of.winner) keys.emplace_back("spot best", "winner");
  keys.insert(keys.end(), {{"spot last", "complete"}, {"spot", "stopped before the last rung"}});
  plot.legend(keys);
  plot.begin(ticks, of.objectives[0].name, y,
             std::to_string(spots.size()) + " trials, " + std::to_string(of.front.size()) +
                 " of them on the Pareto front. The table of trials has the values.");
  // The worst ones first: those on the front lie over them.
  std::ranges::reverse(spots);
  std::vector<Spot> front;
  auto const draw = [&](Spot const& each, char const* kind, double radius) {
    plot.spot(SearchPlot::at_x(x.at(each.x)), SearchPlot::at_y(y, each.y), kind,
              trial_title(of, each.number), radius);
  };
  for (Spot const& each : spots) {
    bool const complete = of.history.trials[each.number].state == TrialState::complete;
    if (of.is_on_front(each.number)) {
      front.push_back(each);
    } else {
      draw(each, complete ? "spot last" : "spot", 2.5);
    }
  }
  std::ranges::sort(front, {}, [](Spot const& each) { return std::pair(each.x, each.y); });
  // Steps, because nothing between two trials was reached: of those that are no worse in the first objective
  // than a place, the best in the second.
  std::string d;
  for (Spot const& each : front) {
    std::string const to_x = place_text(SearchPlot::at_x(x.at(each.x)));
    std::string const to_y = place_text(SearchPlot::at_y(y, each.y));
    if (d.empty()) {
      d = "M" + to_x + ' ' + to_y;
    } else {
      d += of.objectives[0].maximise ? 'V' + to_y + 'H' + to_x : 'H' + to_x + 'V' + to_y;
    }
  }
  if (front.size() > 1) plot.path(d, "edge", "Pareto front");
  for (Spot const& each : front)
    draw(each, of.winner == each.number ? "spot best" : "spot edged", 4);
  plot.end();
  plot.end_figure();
}

FRUGAL_INLINE void write_spending(Page& page, SearchResults const& of) {
  std::vector<SpendingPoint> const points = best_over_spending(of);
  if (points.empty()) return;
  SearchObjective const& objective = of.objectives.front();
  bool const money = points.back().dollars.has_value();
  Chart chart{.title = "Best " + objective.name + " by spending",
              .lines = {{.name = "best so far", .points = {}}},
              .axes = {money ? Axis::dollars : Axis::seconds},
              .may_be_logarithmic = true,
              .note = direction_text(objective)};
  double before = points.front().best;
  for (SpendingPoint const& each : points) {
    Point point{.seconds = each.seconds, .value = before};
    if (money) point.dollars = each.dollars.value_or(0);
    // Until here the best value is the one before.
    if (before != each.best) chart.lines[0].points.push_back(point);
    point.value = before = each.best;
    chart.lines[0].points.push_back(point);
  }
  ChartWriter(page.text(), chart, 0).write();
}

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
