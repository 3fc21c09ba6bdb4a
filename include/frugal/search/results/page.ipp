// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/results/page.hpp>

#include <frugal/base/html_page.hpp>
#include <frugal/base/number_text.hpp>
#include <frugal/base/utf8.hpp>
#include <frugal/inline.hpp>
#include <frugal/report/html/levers.hpp>
#include <frugal/report/html/quantity.hpp>
#include <frugal/search/results/page_charts.hpp>
#include <frugal/search/results/results.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

// A section that has no rows is left out.
namespace frugal::html {

FRUGAL_INLINE std::string spread_text(std::optional<SeedSpread> const& of) {
  return of ? detail::seed_spread_text(*of, "\xc2\xb1") : no_value;
}

FRUGAL_INLINE std::vector<Figure> search_figures(SearchResults const& of) {
  std::vector<Figure> figures;
  auto const add = [&](std::string const& name, std::string const& value,
                       std::string const& small = {}) { figures.push_back({name, value, small}); };
  if (!of.winner) {
    add("winner", no_value,
        of.front.empty() ? "no trial is complete" : "no rule names one of the front");
  } else {
    Candidate const& candidate = of.history.trials[*of.winner].candidate;
    std::string settings = "trial " + std::to_string(*of.winner);
    if (std::string const text = of.settings_text(candidate); !text.empty())
      settings += ": " + text;
    // The sentence below the figures has all of it.
    add("winner", detail::beginning(of.recipe(candidate), 40), detail::beginning(settings, 70));
    OverSeeds const known = over_seeds(of, *of.winner);
    for (std::size_t m = 0; m < of.objectives.size(); ++m) {
      auto const& each = known.objectives[m];
      add(of.objectives[m].name, value_text(each.own, Unit::plain),
          each.fresh ? "over " + detail::count_text(each.fresh->count, "other seed") + ": " +
                           spread_text(each.fresh)
                     : "");
    }
  }
  if (!of.front.empty()) add("on the Pareto front", detail::count_text(of.front.size(), "trial"));
  std::size_t trials = 0, failed = 0, pruned = 0;
  for (SearchTrial const& each : of.history.trials) {
    if (each.repeats) continue;
    ++trials;
    if (each.state == TrialState::failed) ++failed;
    if (each.state == TrialState::pruned) ++pruned;
  }
  add("trials", value_text(trials, Unit::count),
      std::to_string(pruned) + " pruned, " + std::to_string(failed) + " failed");
  std::string const time = time_text(of.seconds());
  if (auto const dollars = of.dollars()) {
    std::string winner;
    if (of.winner) {
      winner = ", " + money_text(*of.dollars(of.history.trials[*of.winner])) + " for the winner";
    }
    add("cost", money_text(*dollars), time + " on workers" + winner);
  } else {
    add("time on workers", time);
  }
  if (auto const share = share_of_full_training(of)) {
    add("trained", value_text(*share, Unit::percent), "of what all trials in full would");
  }
  return figures;
}

FRUGAL_INLINE ComparableTrials::ComparableTrials(SearchResults const& of) {
  constexpr std::size_t enough = 30;
  std::vector<std::uint64_t> const budgets = reached_budgets(of);
  for (auto each = budgets.rbegin(); each != budgets.rend() && samples.size() < enough; ++each) {
    std::vector<ImportanceSample> found;
    for (SearchTrial const& trial : of.history.trials) {
      for (std::size_t rung = 0; rung < trial.rungs.size(); ++rung) {
        if (of.budget(trial, rung) != *each || !of.value(trial, rung, 0)) continue;
        found.push_back({trial.candidate, trial.rungs[rung].values.front()});
      }
    }
    if (found.size() > samples.size()) samples = std::move(found), budget = *each;
  }
}

FRUGAL_INLINE void write_importance(Page& page, SearchResults const& of) {
  constexpr std::size_t least = 10;
  ComparableTrials const trials(of);
  if (trials.samples.size() < least) return;
  auto const count = static_cast<double>(trials.samples.size());
  // Five among the best give steady numbers.
  double const target = std::clamp(5 / count, 0.1, 0.5);
  auto const all = setting_importance(of.domain, trials.samples, {.target = target});
  if (all.front().share == 0) return;
  std::vector<Bar> bars;
  for (SettingImportance const& each : all) {
    if (each.importance == 0) continue;
    bars.push_back(
        {.name = each.name, .value = value_text(each.share, Unit::percent), .to = each.share});
  }
  page.section("importance", "Importance of the settings");
  page.bars(bars,
            "Shares of importance (PED-ANOVA) for being among the best " +
                value_text(target, Unit::percent) + " by " + of.objectives.front().name +
                " of the " + std::to_string(trials.samples.size()) + " trials with a value at " +
                budget_text(of, trials.budget) +
                (of.unit == "steps" || of.unit == "samples" ? " " + of.unit : "") +
                ". A share says how much the best trials differ in this setting from all, one "
                "setting at a time.");
}

FRUGAL_INLINE void write_trials(Page& page, SearchResults const& of) {
  constexpr std::size_t most = 1000;
  std::vector<std::size_t> const ranked = of.ranked();
  if (ranked.empty()) return;
  std::vector<std::string> head{"trial", "recipe", "state"};
  for (SearchObjective const& each : of.objectives) head.push_back(each.name);
  for (SearchedSetting const& each : of.domain.settings) head.push_back(each.name);
  head.insert(head.end(), {"rungs", "samples", "time"});
  if (of.dollars_per_second()) head.emplace_back("cost");
  std::vector<Row> rows;
  for (std::size_t const number : ranked) {
    if (rows.size() == most) break;
    SearchTrial const& trial = of.history.trials[number];
    std::string const mark = of.winner == number      ? "winner"
                             : of.is_on_front(number) ? "Pareto front"
                                                      : "";
    Row row{{std::to_string(number), mark},
            of.recipe(trial.candidate),
            detail::state_text(trial.state) + std::string(trial.ended ? ", ended early" : "")};
    for (std::size_t m = 0; m < of.objectives.size(); ++m) {
      row.push_back(value_text(of.value(trial, m), Unit::plain));
    }
    for (std::size_t i = 0; i < of.domain.settings.size(); ++i) {
      bool const has = trial.candidate.values[i].has_value();
      row.push_back(has ? of.value_text(trial.candidate, i, 4) : no_value);
    }
    row.push_back(std::to_string(trial.rungs.size()) + " of " +
                  std::to_string(of.rungs[trial.bracket].size()));
    row.push_back(value_text(SearchResults::samples(trial), Unit::count));
    row.push_back(time_text(SearchResults::seconds(trial)));
    if (auto const dollars = of.dollars(trial)) row.push_back(money_text(*dollars));
    rows.push_back(std::move(row));
  }
  page.section("trials", "Trials");
  if (ranked.size() > most) {
    page.note("The best " + std::to_string(most) + " of " + std::to_string(ranked.size()) +
              " trials.");
  }
  page.table({"Trials, the best first", head, rows, 3});
}

FRUGAL_INLINE void write_finalists(Page& page, SearchResults const& of) {
  std::vector<OverSeeds> const all = finalists_over_seeds(of);
  if (all.empty()) return;
  std::vector<std::string> head{"trial", "recipe and settings"};
  for (SearchObjective const& each : of.objectives) {
    head.insert(head.end(), {each.name, "other seeds", "flattered by"});
  }
  head.emplace_back("repeats");
  std::vector<Row> rows;
  for (OverSeeds const& known : all) {
    Row row{{std::to_string(known.trial), of.winner == known.trial ? "winner" : ""},
            of.label(of.history.trials[known.trial].candidate)};
    for (OverSeeds::Objective const& each : known.objectives) {
      row.push_back(value_text(each.own, Unit::plain));
      row.push_back(spread_text(each.fresh));
      row.push_back(each.flattered_by ? detail::general(*each.flattered_by, 2) : no_value);
    }
    std::string const missing = detail::missing_repeats_text(known);
    row.push_back(std::to_string(known.repeats.size()) +
                  (missing.empty() ? "" : " (" + missing + ")"));
    rows.push_back(std::move(row));
  }
  page.section("finalists", "Finalists over seeds");
  page.note(
      "The best of many trials is partly the luckiest. Repeats with other seeds were not selected, "
      "so their mean "
      "(\xc2\xb1 standard deviation) is the value to expect.");
  page.table({"Finalists over seeds", head, rows, 2});
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
  std::vector<Row> rows;
  auto const add = [&](Row row, auto const& cost) {
    row.push_back(value_text(cost.samples, Unit::count));
    row.push_back(time_text(cost.seconds));
    row.push_back(parts::share_text(cost.seconds, all));
    if (cost.dollars) row.push_back(money_text(*cost.dollars));
    rows.push_back(std::move(row));
  };
  for (RungCost const& each : costs) {
    Row row{std::to_string(each.rung + 1)};
    if (several) row.insert(row.begin(), std::to_string(each.bracket + 1));
    row.insert(row.end(), {budget_text(of, each.budget), std::to_string(each.trials),
                           std::to_string(each.promoted), value_text(each.best, Unit::plain)});
    add(std::move(row), each);
  }
  for (auto const& [name, cost] :
       {std::pair{"no result", attempt_cost(of)}, {"other seeds", repeat_cost(of)}}) {
    if (cost.trials == 0) continue;
    Row row{name};
    if (several) row.emplace_back(no_value);
    row.insert(row.end(), {no_value, std::to_string(cost.trials), no_value, no_value});
    add(std::move(row), cost);
  }
  page.section("rungs", "Rungs");
  page.table({"Cost of each rung", head, rows});
}

FRUGAL_INLINE void write_failed(Page& page, SearchResults const& of) {
  constexpr std::size_t most = 200;
  std::vector<Row> rows;
  std::size_t count = 0;
  for (std::size_t i = 0; i < of.history.trials.size(); ++i) {
    SearchTrial const& trial = of.history.trials[i];
    if (trial.state != TrialState::failed || ++count > most) continue;
    rows.push_back({std::to_string(i), of.label(trial.candidate),
                    Cell::long_text(trial.outcome.empty() ? "no reason is known" : trial.outcome),
                    std::to_string(trial.rungs.size()), time_text(SearchResults::seconds(trial))});
  }
  if (rows.empty()) return;
  page.section("failed", "Failed trials");
  if (count > most) {
    page.note("The first " + std::to_string(most) + " of " + std::to_string(count) + ".");
  }
  page.table({"Failed trials",
              {"trial", "recipe and settings", "why", "rungs ended", "time up to the last of them"},
              rows,
              3});
}

FRUGAL_INLINE void write_dropped(Page& page, SearchResults const& of) {
  if (of.dropped.empty()) return;
  std::vector<Row> rows;
  for (auto const& [recipe, why] : of.dropped) {
    rows.push_back({recipe, Cell::long_text(why)});
  }
  page.section("dropped", "Recipes that are not possible");
  page.table({"Recipes that are not possible", {"recipe", "why"}, rows, 2});
}

}  // namespace frugal::html

namespace frugal {

FRUGAL_INLINE std::string search_page(SearchResults const& of, std::string_view title,
                                      std::string_view code) {
  of.require();
  html::Page page;
  page.figures(html::search_figures(of));
  if (of.winner) {
    std::string const flattery =
        detail::flattery_text(of, over_seeds(of, *of.winner), of.winner_by.value_or(0));
    page.text("The winner is trial " + std::to_string(*of.winner) + ", " +
              of.label(of.history.trials[*of.winner].candidate, 4) +
              (flattery.empty() ? "." : ". " + flattery));
  }
  if (of.stopped_by == "budget") page.text("The search ended because its budget is spent.");
  if (!of.stopped_by.empty() && of.stopped_by != "budget") {
    page.text("The search was stopped by " + of.stopped_by + ".");
  }
  if (of.interrupted) page.text("A worker was preempted: start the search again, and it goes on.");
  for (std::string const& each : of.warnings) page.text("Warning: " + each);
  html::DrawnTrials const drawn(of);
  if (drawn.numbers.size() > drawn.failed_drawn) {
    page.section("values", "Values");
    html::write_rung_curves(page, of, drawn);
    html::write_objectives(page, of, drawn);
    html::write_spending(page, of);
  }
  if (!drawn.numbers.empty()) {
    page.section("settings", "Settings");
    html::write_parallel(page, of, drawn);
  }
  html::write_importance(page, of);
  html::write_finalists(page, of);
  if (!code.empty()) {
    page.section("code", "Code to paste");
    page.code("Code to paste", code);
  }
  html::write_trials(page, of);
  html::write_rungs(page, of);
  html::write_failed(page, of);
  html::write_dropped(page, of);
  return std::move(page).html(title, "Report of a search");
}

}  // namespace frugal
