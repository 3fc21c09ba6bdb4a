// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/results/page_charts.hpp>

#include <frugal/inline.hpp>
#include <frugal/report/html/chart.hpp>
#include <frugal/report/html/chart_writer.hpp>
#include <frugal/report/html/curves.hpp>
#include <frugal/report/html/quantity.hpp>
#include <frugal/report/html/scale.hpp>
#include <frugal/search/results/spending.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

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

}  // namespace frugal::html
