// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/results/page_tables.hpp>

#include <frugal/inline.hpp>
#include <frugal/report/html/levers.hpp>
#include <frugal/search/results/page_charts.hpp>
#include <frugal/search/results/spending.hpp>

#include <cstdint>
#include <utility>
#include <vector>

namespace frugal::html {

FRUGAL_INLINE void write_trials(Page& page, SearchResults const& of) {
  constexpr std::size_t most = 1000;
  std::vector<std::size_t> const ranked = of.ranked();
  if (ranked.empty()) return;
  std::vector<std::string> head{"trial", "recipe", "state"};
  for (SearchObjective const& each : of.objectives) head.push_back(each.name);
  for (SearchedSetting const& each : of.domain.settings) head.push_back(each.name);
  head.insert(head.end(), {"rungs", "samples", "time"});
  if (of.dollars_per_second()) head.emplace_back("cost");
  std::vector<Page::Row> rows;
  for (std::size_t const number : ranked) {
    if (rows.size() == most) break;
    SearchTrial const& trial = of.history.trials[number];
    std::string const mark = of.winner == number      ? "winner"
                             : of.is_on_front(number) ? "Pareto front"
                                                      : "";
    Page::Row row{
        parts::marked_cell(number, mark), Page::escaped(of.recipe(trial.candidate)),
        detail::state_text(trial.state) + std::string(trial.ended ? ", ended early" : "")};
    for (std::size_t m = 0; m < of.objectives.size(); ++m) {
      row.push_back(parts::number_cell(of.value(trial, m)));
    }
    for (std::size_t i = 0; i < of.domain.settings.size(); ++i) {
      bool const has = trial.candidate.values[i].has_value();
      row.push_back(has ? Page::escaped(of.value_text(trial.candidate, i, 4)) : no_value);
    }
    row.push_back(std::to_string(trial.rungs.size()) + " of " +
                  std::to_string(of.rungs[trial.bracket].size()));
    row.push_back(value_text(static_cast<double>(SearchResults::samples(trial)), Unit::count));
    row.push_back(time_text(SearchResults::seconds(trial)));
    if (auto const dollars = of.dollars(trial)) row.push_back(money_text(*dollars));
    rows.push_back(std::move(row));
  }
  page.section("trials", "Trials");
  if (ranked.size() > most) {
    page.paragraph(
        "The best " + std::to_string(most) + " of " + std::to_string(ranked.size()) + " trials.",
        "note");
  }
  page.table("Trials, the best first", head, rows, 3);
}

FRUGAL_INLINE void write_finalists(Page& page, SearchResults const& of) {
  std::vector<OverSeeds> const all = finalists_over_seeds(of);
  if (all.empty()) return;
  std::vector<std::string> head{"trial", "recipe and settings"};
  for (SearchObjective const& each : of.objectives) {
    head.insert(head.end(), {each.name, "other seeds", "flattered by"});
  }
  head.emplace_back("repeats");
  std::vector<Page::Row> rows;
  for (OverSeeds const& known : all) {
    Page::Row row{parts::marked_cell(known.trial, of.winner == known.trial ? "winner" : ""),
                  Page::escaped(of.label(of.history.trials[known.trial].candidate))};
    for (OverSeeds::Objective const& each : known.objectives) {
      row.push_back(parts::number_cell(each.own));
      row.push_back(parts::spread_cell(each.fresh));
      row.push_back(each.flattered_by ? detail::general(*each.flattered_by, 2) : no_value);
    }
    std::string const missing = detail::missing_repeats_text(known);
    row.push_back(std::to_string(known.repeats.size()) +
                  (missing.empty() ? "" : " (" + missing + ")"));
    rows.push_back(std::move(row));
  }
  page.section("finalists", "Finalists over seeds");
  page.paragraph(
      "The best of many trials is partly the luckiest. Repeats with other seeds were not selected, "
      "so their mean "
      "(\xc2\xb1 standard deviation) is the value to expect.",
      "note");
  page.table("Finalists over seeds", head, rows, 2);
}

FRUGAL_INLINE void write_rungs(Page& page, SearchResults const& of) {
  std::vector<RungCost> const costs = rung_costs(of);
  if (costs.empty()) return;
  bool const several = of.rungs.size() > 1;
  double const all = of.seconds();
  std::vector<std::string> head{"rung"};
  if (several) head.insert(head.begin(), "bracket");
  head.insert(head.end(), {"budget" + budget_unit(of), "trials", "go on",
                           "best " + of.objectives.front().name, "samples", "time", "of all"});
  if (of.dollars_per_second()) head.emplace_back("cost");
  std::vector<Page::Row> rows;
  auto const add = [&](Page::Row row, auto const& cost) {
    row.push_back(value_text(static_cast<double>(cost.samples), Unit::count));
    row.push_back(time_text(cost.seconds));
    row.push_back(parts::share_text(cost.seconds, all));
    if (cost.dollars) row.push_back(money_text(*cost.dollars));
    rows.push_back(std::move(row));
  };
  for (RungCost const& each : costs) {
    Page::Row row{std::to_string(each.rung + 1)};
    if (several) row.insert(row.begin(), std::to_string(each.bracket + 1));
    row.insert(row.end(), {budget_text(of, each.budget), std::to_string(each.trials),
                           std::to_string(each.promoted), parts::number_cell(each.best)});
    add(std::move(row), each);
  }
  if (TrialsCost const cost = attempt_cost(of); cost.trials > 0) {
    Page::Row row{"no result"};
    if (several) row.emplace_back(no_value);
    row.insert(row.end(), {no_value, std::to_string(cost.trials), no_value, no_value});
    add(std::move(row), cost);
  }
  if (TrialsCost const cost = repeat_cost(of); cost.trials > 0) {
    Page::Row row{"other seeds"};
    if (several) row.emplace_back(no_value);
    row.insert(row.end(), {no_value, std::to_string(cost.trials), no_value, no_value});
    add(std::move(row), cost);
  }
  page.section("rungs", "Rungs");
  page.table("Cost of each rung", head, rows);
}

FRUGAL_INLINE void write_failed(Page& page, SearchResults const& of) {
  constexpr std::size_t most = 200;
  std::vector<Page::Row> rows;
  std::size_t count = 0;
  for (std::size_t i = 0; i < of.history.trials.size(); ++i) {
    SearchTrial const& trial = of.history.trials[i];
    if (trial.state != TrialState::failed || ++count > most) continue;
    rows.push_back({std::to_string(i), Page::escaped(of.label(trial.candidate)),
                    parts::long_cell(trial.outcome.empty() ? "no reason is known" : trial.outcome),
                    std::to_string(trial.rungs.size()), time_text(SearchResults::seconds(trial))});
  }
  if (rows.empty()) return;
  page.section("failed", "Failed trials");
  if (count > most) {
    page.paragraph("The first " + std::to_string(most) + " of " + std::to_string(count) + ".",
                   "note");
  }
  page.table("Failed trials",
             {"trial", "recipe and settings", "why", "rungs ended", "time up to the last of them"},
             rows, 3);
}

FRUGAL_INLINE void write_dropped(Page& page, SearchResults const& of) {
  if (of.dropped.empty()) return;
  std::vector<Page::Row> rows;
  for (auto const& [recipe, why] : of.dropped) {
    rows.push_back({Page::escaped(recipe), parts::long_cell(why)});
  }
  page.section("dropped", "Recipes that are not possible");
  page.table("Recipes that are not possible", {"recipe", "why"}, rows, 2);
}

}  // namespace frugal::html
