// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/results/table.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/base/text_width.hpp>
#include <frugal/base/utf8.hpp>
#include <frugal/inline.hpp>
#include <frugal/search/results/results.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE std::string SearchTable::text() const {
  std::string out = trials() + '\n' + result() + finalists() + rungs();
  for (std::string const& each : of_.warnings) out += "Warning: " + each + '\n';
  out += failed();
  for (auto const& [recipe, why] : of_.dropped) {
    out += "'" + recipe + "' is not possible. " + why + '\n';
  }
  if (of_.stopped_by == "budget") out += "The search ended because its budget is spent.\n";
  if (!of_.stopped_by.empty() && of_.stopped_by != "budget") {
    out += "The search was stopped by " + of_.stopped_by + ".\n";
  }
  if (of_.interrupted) out += "A worker was preempted: start the search again, and it goes on.\n";
  return out;
}

FRUGAL_INLINE std::string SearchTable::columns_of(Rows const& rows) {
  // Names of recipes and settings may be long; other cells are short.
  constexpr std::size_t widest = 48;
  return watch::columns(rows, std::vector<std::size_t>(rows.front().size(), widest));
}

FRUGAL_INLINE std::vector<std::string> SearchTable::head() const {
  std::vector<std::string> cells{"#", "trial", "recipe"};
  if (apart()) {
    for (SearchedSetting const& each : of_.domain.settings) cells.push_back(each.name);
  } else {
    cells.emplace_back("settings");
  }
  for (SearchObjective const& each : of_.objectives) cells.push_back(each.name);
  cells.insert(cells.end(), {"rung", "samples", "time"});
  if (priced()) cells.emplace_back("cost");
  cells.emplace_back("state");
  return cells;
}

FRUGAL_INLINE std::vector<std::string> SearchTable::row(std::size_t rank,
                                                        std::size_t number) const {
  SearchTrial const& trial = list()[number];
  bool const marked = of_.winner == number || of_.is_on_front(number);
  std::vector<std::string> cells{std::to_string(rank), std::to_string(number) + (marked ? "*" : ""),
                                 of_.recipe(trial.candidate)};
  if (apart()) {
    for (std::size_t i = 0; i < of_.domain.settings.size(); ++i) {
      cells.push_back(of_.value_text(trial.candidate, i, 4));
    }
  } else {
    cells.push_back(of_.settings_text(trial.candidate));
  }
  for (std::size_t m = 0; m < of_.objectives.size(); ++m) {
    cells.push_back(number_text(of_.value(trial, m)));
  }
  cells.push_back(std::to_string(trial.rungs.size()) + " of " +
                  std::to_string(of_.rungs[trial.bracket].size()));
  cells.push_back(std::to_string(SearchResults::samples(trial)));
  cells.push_back(watch::duration_text(SearchResults::seconds(trial)));
  if (priced()) cells.push_back(dollars_text(of_.dollars(trial)));
  cells.push_back(state_text(trial.state) + std::string(trial.ended ? ", ended early" : ""));
  return cells;
}

FRUGAL_INLINE std::string SearchTable::trials() const {
  std::vector<std::size_t> const ranked = of_.ranked();
  std::string out = count_text(ranked.size(), "trial") + " of " +
                    count_text(of_.domain.recipes.size(), "recipe") + ", the best first;";
  for (SearchObjective const& each : of_.objectives) {
    out += (&each == &of_.objectives.front() ? " " : ", ") + each.name +
           (each.maximise ? " is maximised" : " is minimised");
  }
  out += ".\n\n";
  Rows rows{head()};
  for (std::size_t i = 0; i < std::min(ranked.size(), most_); ++i) {
    rows.push_back(row(i + 1, ranked[i]));
  }
  out += columns_of(rows);
  if (ranked.size() > most_) {
    out += "... and " + count_text(ranked.size() - most_, "further trial") + ".\n";
  }
  if (of_.objectives.size() > 1 && !of_.front.empty()) out += "* on the Pareto front\n";
  return out;
}

FRUGAL_INLINE std::string SearchTable::result() const {
  std::string out;
  if (!of_.winner) {
    out = of_.front.empty() ? "No trial is complete: there is no winner.\n"
                            : "No rule names a winner (SearchSettings::winner_by): " +
                                  count_text(of_.front.size(), "trial") + " on the Pareto front.\n";
  } else {
    SearchTrial const& trial = list()[*of_.winner];
    out = "Winner: trial " + std::to_string(*of_.winner) + ", " + of_.label(trial.candidate, 4);
    OverSeeds const known = over_seeds(of_, *of_.winner);
    for (std::size_t m = 0; m < of_.objectives.size(); ++m) {
      auto const& each = known.objectives[m];
      if (!each.own && !each.fresh) continue;
      out += "; " + of_.objectives[m].name + ' ' + number_text(each.own);
      if (each.fresh) {
        out += " (" + seed_spread_text(*each.fresh) + " over " +
               count_text(each.fresh->count, "other seed") + ")";
      }
    }
    out += ".\n";
    std::string const flattery = flattery_text(of_, known, of_.winner_by.value_or(0));
    if (!flattery.empty()) out += flattery + '\n';
  }
  out += "Cost: " + watch::duration_text(of_.seconds()) + " on workers, " +
         std::to_string(of_.samples()) + " samples";
  if (priced()) out += ", " + dollars_text(of_.dollars());
  if (priced() && of_.winner) {
    out += " (" + dollars_text(of_.dollars(list()[*of_.winner])) + " of them for the winner)";
  }
  if (auto const share = share_of_full_training(of_)) {
    out += "; the trials trained " + fixed_short(100 * *share, 1) +
           "% of what all of them in full would have";
  }
  return out + ".\n";
}

FRUGAL_INLINE std::string SearchTable::finalists() const {
  std::vector<OverSeeds> const all = finalists_over_seeds(of_);
  if (all.empty()) return "";
  Rows rows{{"finalist", "recipe and settings"}};
  for (SearchObjective const& each : of_.objectives) {
    rows[0].insert(rows[0].end(), {each.name, "other seeds", "flattered by"});
  }
  rows[0].emplace_back("repeats");
  for (OverSeeds const& known : all) {
    auto& cells = rows.emplace_back();
    bool const marked = of_.winner == known.trial;
    cells = {std::to_string(known.trial) + (marked ? "*" : ""),
             of_.label(list()[known.trial].candidate)};
    for (OverSeeds::Objective const& each : known.objectives) {
      cells.push_back(number_text(each.own));
      cells.push_back(each.fresh ? seed_spread_text(*each.fresh) : "-");
      cells.push_back(each.flattered_by ? general(*each.flattered_by, 2) : "-");
    }
    std::string const missing = missing_repeats_text(known);
    cells.push_back(std::to_string(known.repeats.size()) +
                    (missing.empty() ? "" : " (" + missing + ")"));
  }
  return "\nFinalists over seeds that the search has not selected:\n\n" + columns_of(rows);
}

FRUGAL_INLINE std::string SearchTable::rungs() const {
  std::vector<RungCost> const costs = rung_costs(of_);
  if (costs.empty()) return "";
  Rows rows{{"bracket", "rung", of_.unit, "trials", "go on", "best " + of_.objectives[0].name,
             "samples", "time", "cost"}};
  double const all = of_.seconds();
  auto const add = [&](std::vector<std::string> cells, auto const& cost) {
    cells.push_back(std::to_string(cost.samples));
    cells.push_back(watch::duration_text(cost.seconds));
    std::string const share = all > 0 ? fixed_short(100 * cost.seconds / all, 0) + "%" : "-";
    cells.push_back(cost.dollars ? dollars_text(cost.dollars) + " (" + share + ")" : share);
    rows.push_back(std::move(cells));
  };
  for (RungCost const& each : costs) {
    add({std::to_string(each.bracket + 1), std::to_string(each.rung + 1),
         std::to_string(each.budget), std::to_string(each.trials), std::to_string(each.promoted),
         number_text(each.best)},
        each);
  }
  if (TrialsCost const cost = attempt_cost(of_); cost.trials > 0) {
    add({"no result", "-", "-", std::to_string(cost.trials), "-", "-"}, cost);
  }
  if (TrialsCost const cost = repeat_cost(of_); cost.trials > 0) {
    add({"seeds", "-", "-", std::to_string(cost.trials), "-", "-"}, cost);
  }
  return "\nCost of each rung:\n\n" + columns_of(rows) + '\n';
}

FRUGAL_INLINE std::string SearchTable::failed() const {
  std::string out;
  std::size_t count = 0;
  for (std::size_t i = 0; i < list().size(); ++i) {
    if (list()[i].state != TrialState::failed || ++count > most_) continue;
    out += "Trial " + std::to_string(i) + " failed, " +
           beginning(of_.label(list()[i].candidate), 90) + ": " +
           (list()[i].outcome.empty() ? "no reason is known" : list()[i].outcome) + ".\n";
  }
  if (count > most_) out += "... and " + std::to_string(count - most_) + " further ones failed.\n";
  return out;
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE std::string search_table(SearchResults const& of, std::size_t rows) {
  of.require();
  return detail::SearchTable(of, rows).text();
}

}  // namespace frugal
