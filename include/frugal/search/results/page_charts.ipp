// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/results/page_charts.hpp>

#include <frugal/inline.hpp>
#include <frugal/report/html/quantity.hpp>
#include <frugal/report/html/run_page.hpp>
#include <frugal/search/results/results.hpp>
#include <frugal/search/trials/candidate.hpp>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>
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
  auto const add = [&](std::vector<std::size_t> const& from) {
    std::size_t const count = std::min(from.size(), most_of_a_kind);
    for (std::size_t i = 0; i < count; ++i) numbers.push_back(from[i * from.size() / count]);
    return count;
  };
  short_ones = short_trials.size(), short_drawn = add(short_trials);
  failed_ones = failed.size(), failed_drawn = add(failed);
}

FRUGAL_INLINE std::vector<std::string> DrawnTrials::notes() const {
  std::vector<std::string> all;
  auto const add = [&](std::size_t drawn, std::size_t of, char const* kind) {
    if (drawn == of) return;
    all.push_back(std::to_string(drawn) + " of the " + std::to_string(of) + " trials that " + kind +
                  " are drawn, spread evenly over their ranks.");
  };
  add(short_drawn, short_ones, "ended at their first rung");
  add(failed_drawn, failed_ones, "failed");
  return all;
}

FRUGAL_INLINE std::string trial_title(SearchResults const& of, std::size_t number) {
  SearchTrial const& trial = of.history.trials[number];
  std::string text = "trial " + std::to_string(number) + ": " + of.label(trial.candidate);
  for (std::size_t m = 0; m < of.objectives.size(); ++m) {
    auto const value = of.value(trial, m);
    if (value) text += ", " + of.objectives[m].name + ' ' + short_number(*value);
  }
  return text + (trial.state == TrialState::failed ? ", failed" : "");
}

}  // namespace frugal::html

namespace frugal::html::parts {

FRUGAL_INLINE Table rung_values(SearchResults const& of, DrawnTrials const& drawn,
                                std::vector<std::uint64_t> const& budgets) {
  constexpr std::size_t most = 50;
  Table table{.title = "Values: " + of.objectives[0].name + " by rung", .head = {"trial"}, .rows{}};
  for (std::uint64_t const each : budgets) table.head.push_back(budget_text(of, each));
  for (std::size_t const number : drawn.numbers) {
    SearchTrial const& trial = of.history.trials[number];
    if (trial.rungs.size() < 2 || table.rows.size() == most) continue;
    Row row{std::to_string(number)};
    row.resize(table.head.size(), no_value);
    for (std::size_t rung = 0; rung < trial.rungs.size(); ++rung) {
      auto const at = std::ranges::find(budgets, of.budget(trial, rung).value_or(0));
      auto const value = of.value(trial, rung, 0);
      if (value && at != budgets.end()) {
        row[static_cast<std::size_t>(at - budgets.begin()) + 1] = short_number(*value);
      }
    }
    table.rows.push_back(std::move(row));
  }
  table.folded = "Values of the best " + std::to_string(table.rows.size());
  return table;
}

}  // namespace frugal::html::parts

namespace frugal::html {

FRUGAL_INLINE void write_rung_curves(Page& page, SearchResults const& of,
                                     DrawnTrials const& drawn) {
  std::vector<std::uint64_t> const budgets = reached_budgets(of);
  if (budgets.size() < 2) return;
  SearchObjective const& objective = of.objectives.front();
  Chart chart{.title = capitalised(objective.name + " by rung"),
              .axes = {{"budget", "budget of the rung" + budget_unit(of), Unit::plain}},
              .may_be_logarithmic = true,
              .note = direction_text(objective),
              .id = "by-rung",
              .about = std::to_string(drawn.numbers.size()) +
                       " trials, a line each. The table below has the values of the best ones, and "
                       "the table of trials all last ones.",
              .notes = drawn.notes(),
              .table = parts::rung_values(of, drawn, budgets)};
  for (std::uint64_t const each : budgets) {
    chart.axes[0].ticks.emplace_back(static_cast<double>(each), budget_text(of, each));
  }
  if (of.winner) chart.legend.push_back({"best", "winner"});
  chart.legend.insert(chart.legend.end(), {{"last", "trained up to the last rung"},
                                           {"", "stopped before it"},
                                           {"", "stopped at its first rung", true}});
  // Trials of one rung are spots of one line, those that ended there of another.
  std::size_t longest = 0;
  ChartLine spots[]{{.dot = 2, .path = false}, {.kind = "last", .dot = 2, .path = false}};
  std::optional<ChartLine> winner;
  for (auto each = drawn.numbers.rbegin(); each != drawn.numbers.rend(); ++each) {
    SearchTrial const& trial = of.history.trials[*each];
    longest = std::max(longest, trial.rungs.size());
    bool const complete = trial.state == TrialState::complete;
    ChartLine line{.kind = complete ? "last" : "", .titles = {trial_title(of, *each)}};
    for (std::size_t rung = 0; rung < trial.rungs.size(); ++rung) {
      auto const budget = static_cast<double>(of.budget(trial, rung).value_or(0));
      if (auto const value = of.value(trial, rung, 0))
        line.points.push_back({.step = budget, .value = *value});
    }
    if (line.points.empty()) continue;
    if (of.winner == *each) {
      line.kind = "best", line.dot = 4;
      winner = std::move(line);
    } else if (line.points.size() > 1) {
      chart.lines.push_back(std::move(line));
    } else {
      spots[complete].points.push_back(line.points[0]);
      spots[complete].titles.push_back(line.titles[0]);
    }
  }
  for (ChartLine& each : spots) {
    if (!each.points.empty()) chart.lines.push_back(std::move(each));
  }
  if (winner) chart.lines.push_back(std::move(*winner));
  if (longest > 1 && !chart.lines.empty()) write_chart(page, chart);
}

FRUGAL_INLINE void write_objectives(Page& page, SearchResults const& of, DrawnTrials const& drawn) {
  if (of.objectives.size() < 2) return;
  enum Kind : unsigned char { stopped, complete, on_front, best, kinds };
  ChartLine spots[kinds]{{.dot = 3, .path = false},
                         {.kind = "last", .dot = 3, .path = false},
                         {.kind = "edge", .dot = 5, .path = false},
                         {.kind = "best", .dot = 5, .path = false}};
  std::vector<Point> front;
  std::size_t count = 0;
  // The worst ones first: better ones lie over them.
  for (auto each = drawn.numbers.rbegin(); each != drawn.numbers.rend(); ++each) {
    SearchTrial const& trial = of.history.trials[*each];
    auto const x = of.value(trial, 0), y = of.value(trial, 1);
    if (!x || !y) continue;
    Point const point{.step = *x, .value = *y};
    bool const is_on_front = of.is_on_front(*each);
    if (is_on_front) front.push_back(point);
    ChartLine& line = spots[is_on_front && of.winner == *each     ? best
                            : is_on_front                         ? on_front
                            : trial.state == TrialState::complete ? complete
                                                                  : stopped];
    line.points.push_back(point);
    line.titles.push_back(trial_title(of, *each));
    ++count;
  }
  if (count == 0) return;
  std::ranges::sort(front, {}, [](Point const& each) { return std::pair(each.step, each.value); });
  // Steps, because nothing between two trials was reached: of those that are no worse in the first objective
  // than a place, the best in the second.
  ChartLine edge{.kind = "edge", .titles = {"Pareto front"}};
  for (Point const& each : front) {
    if (!edge.points.empty()) {
      Point const last = edge.points.back();
      edge.points.push_back(of.objectives[0].maximise
                                ? Point{.step = last.step, .value = each.value}
                                : Point{.step = each.step, .value = last.value});
    }
    edge.points.push_back(each);
  }
  Chart chart{
      .title = capitalised(of.objectives[1].name + " against " + of.objectives[0].name),
      .lines = {spots[stopped], spots[complete], edge, spots[on_front], spots[best]},
      .axes = {{.id = "first", .name = of.objectives[0].name, .unit = Unit::plain, .loose = true}},
      .may_be_logarithmic = true,
      .note = "better: " + std::string(of.objectives[0].maximise ? "right" : "left") + " and " +
              (of.objectives[1].maximise ? "up" : "down"),
      .legend = {{"edge", "Pareto front"},
                 {"last", "complete", true},
                 {"", "stopped before the last rung", true}},
      .id = "objectives",
      .about = std::to_string(count) + " trials, " + std::to_string(of.front.size()) +
               " of them on the Pareto front. The table of trials has the values."};
  if (of.winner) chart.legend.insert(chart.legend.begin() + 1, {"best", "winner", true});
  std::erase_if(chart.lines, [](ChartLine const& each) { return each.points.empty(); });
  write_chart(page, chart);
}

FRUGAL_INLINE void write_spending(Page& page, SearchResults const& of) {
  std::vector<SpendingPoint> const points = best_over_spending(of);
  if (points.empty()) return;
  SearchObjective const& objective = of.objectives.front();
  bool const money = points.back().dollars.has_value();
  Chart chart{.title = "Best " + objective.name + " by spending",
              .lines = {{.name = "best so far"}},
              .axes = {money ? dollars_axis() : seconds_axis()},
              .may_be_logarithmic = true,
              .note = direction_text(objective)};
  if (money) chart.columns = {seconds_axis()};
  double before = points.front().best;
  for (SpendingPoint const& each : points) {
    Point point{.seconds = each.seconds, .value = before};
    if (money) point.dollars = each.dollars.value_or(0);
    // Until here the best value is the one before.
    if (before != each.best) chart.lines[0].points.push_back(point);
    point.value = before = each.best;
    chart.lines[0].points.push_back(point);
  }
  write_chart(page, chart);
}

FRUGAL_INLINE void write_parallel(Page& page, SearchResults const& of, DrawnTrials const& drawn) {
  auto const& trials = of.history.trials;
  using SettingValue = std::function<std::optional<double>(SearchTrial const&)>;
  std::vector<std::pair<std::string, Distribution>> settings;
  std::vector<SettingValue> values;
  auto const add = [&](std::string const& name, Distribution const& range, SettingValue value) {
    // An axis on which all are alike shows nothing.
    if (count_of(range) == 1) return;
    settings.emplace_back(name, range);
    values.push_back(std::move(value));
  };
  add(SearchDomain::recipe_parameter, of.domain.recipe_choice(), [](SearchTrial const& trial) {
    return std::optional(static_cast<double>(trial.candidate.recipe));
  });
  for (std::size_t i = 0; i < of.domain.settings.size(); ++i) {
    add(of.domain.settings[i].name, of.domain.settings[i].values,
        [i](SearchTrial const& trial) { return trial.candidate.values[i]; });
  }
  bool const valued = std::ranges::any_of(
      drawn.numbers, [&](std::size_t number) { return of.value(trials[number]).has_value(); });
  if (valued) values.push_back([&](SearchTrial const& trial) { return of.value(trial); });
  if (drawn.numbers.empty() || values.size() < 2) return;
  bool const any = drawn.failed_ones < drawn.numbers.size();
  std::vector<LegendKey> legend;
  if (of.winner) legend.push_back({"best", "winner"});
  if (any) {
    legend.insert(legend.end(), {{"q0", "best fifth"},
                                 {"q1", "second"},
                                 {"q2", "third"},
                                 {"q3", "fourth"},
                                 {"q4", "last fifth"}});
  }
  if (drawn.failed_ones > 0) legend.push_back({"lost", "failed"});
  detail::JsonWriter& json = page.begin("parallel");
  json.add("id", "parallel").add("title", "Settings and " + of.objectives.front().name);
  json.add("note", direction_text(of.objectives.front()));
  json.add("label", "Settings of the trials");
  json.add("about",
           std::to_string(drawn.numbers.size()) +
               " trials, a line each, from axis to axis. The table of trials has the values.");
  write_legend(json, legend);
  json.key("axes").array();
  for (auto const& [name, range] : settings) {
    json.object().add("name", name);
    auto const add_range = [&](double low, double high, bool logs, char const* unit) {
      json.key("low").raw(json_number(low)).key("high").raw(json_number(high));
      json.add("log", logs).add("unit", unit);
    };
    if (auto const* const choice = std::get_if<Choice>(&range)) {
      write_texts(json, "names", choice->names);
    } else if (auto const* const real = std::get_if<Uniform>(&range)) {
      add_range(real->low, real->high, false, "plain");
    } else if (auto const* const log = std::get_if<LogUniform>(&range)) {
      add_range(log->low, log->high, true, "plain");
    } else if (auto const* const whole = std::get_if<Int>(&range)) {
      add_range(static_cast<double>(whole->low), static_cast<double>(whole->high), whole->log,
                "count");
    }
    json.end();
  }
  if (valued) json.object().add("name", of.objectives.front().name).end();
  json.end().key("lines").array();
  std::map<std::size_t, std::size_t> rank_of;
  for (std::size_t const number : of.ranked()) {
    if (trials[number].state != TrialState::failed) rank_of.emplace(number, rank_of.size());
  }
  auto const draw = [&](std::size_t number) {
    SearchTrial const& trial = trials[number];
    std::string const kind = of.winner == number ? "best"
                             : trial.state == TrialState::failed
                                 ? "lost"
                                 : "q" + std::to_string(5 * rank_of[number] / rank_of.size());
    json.object().add("number", number).add("kind", kind).add("title", trial_title(of, number));
    json.key("values").array();
    double const none = std::numeric_limits<double>::quiet_NaN();
    for (auto const& value : values) json.raw(json_number(value(trial).value_or(none)));
    json.end().end();
  };
  // Better lines lie over worse ones, and the winner's over all. Failed trials are at the end of the list.
  for (auto each = drawn.numbers.rbegin(); each != drawn.numbers.rend(); ++each) {
    if (of.winner != *each) draw(*each);
  }
  if (of.winner && std::ranges::count(drawn.numbers, *of.winner) != 0) draw(*of.winner);
  json.end();
  std::vector<std::string> notes = drawn.notes();
  if (any) {
    notes.insert(notes.begin(),
                 "Colors are ranks: complete trials come first, then those that trained longer. A "
                 "line skips the axes of settings that its recipe does not have.");
  }
  write_texts(json, "notes", notes);
  json.end();
}

}  // namespace frugal::html
