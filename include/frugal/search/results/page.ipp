// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/results/page.hpp>

#include <frugal/inline.hpp>
#include <frugal/report/html/levers.hpp>
#include <frugal/report/html/quantity.hpp>
#include <frugal/search/results/over_seeds.hpp>
#include <frugal/search/results/page_charts.hpp>
#include <frugal/search/results/page_parallel.hpp>
#include <frugal/search/results/page_plot.hpp>
#include <frugal/search/results/page_tables.hpp>
#include <frugal/search/results/spending.hpp>

#include <algorithm>
#include <cstddef>

namespace frugal::html {

FRUGAL_INLINE std::vector<std::pair<std::string, std::string>> search_figures(
    SearchResults const& of) {
  std::vector<std::pair<std::string, std::string>> figures;
  auto const small = [](std::string const& text) {
    return " <small>" + Page::escaped(text) + "</small>";
  };
  if (!of.winner) {
    figures.emplace_back("winner",
                         no_value + small(of.front.empty() ? "no trial is complete"
                                                           : "no rule names one of the front"));
  } else {
    Candidate const& candidate = of.history.trials[*of.winner].candidate;
    std::string settings = "trial " + std::to_string(*of.winner);
    if (std::string const text = of.settings_text(candidate); !text.empty())
      settings += ": " + text;
    // The sentence below the figures has all of it.
    figures.emplace_back("winner", Page::escaped(detail::beginning(of.recipe(candidate), 40)) +
                                       small(detail::beginning(settings, 70)));
    OverSeeds const known = over_seeds(of, *of.winner);
    for (std::size_t m = 0; m < of.objectives.size(); ++m) {
      auto const& each = known.objectives[m];
      std::string value = parts::number_cell(each.own);
      if (each.fresh) {
        value += small("over " + detail::count_text(each.fresh->count, "other seed") + ": " +
                       parts::spread_cell(each.fresh));
      }
      figures.emplace_back(of.objectives[m].name, value);
    }
  }
  if (!of.front.empty())
    figures.emplace_back("on the Pareto front", detail::count_text(of.front.size(), "trial"));
  std::size_t trials = 0, failed = 0, pruned = 0;
  for (SearchTrial const& each : of.history.trials) {
    if (each.repeats) continue;
    ++trials;
    if (each.state == TrialState::failed) ++failed;
    if (each.state == TrialState::pruned) ++pruned;
  }
  figures.emplace_back("trials", value_text(static_cast<double>(trials), Unit::count) +
                                     small(std::to_string(pruned) + " pruned, " +
                                           std::to_string(failed) + " failed"));
  std::string const time = time_text(of.seconds());
  if (auto const dollars = of.dollars()) {
    std::string winner;
    if (of.winner) {
      winner = ", " + money_text(*of.dollars(of.history.trials[*of.winner])) + " for the winner";
    }
    figures.emplace_back("cost", money_text(*dollars) + small(time + " on workers" + winner));
  } else {
    figures.emplace_back("time on workers", time);
  }
  if (auto const share = share_of_full_training(of)) {
    figures.emplace_back(
        "trained", value_text(*share, Unit::percent) + small("of what all trials in full would"));
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
  page.section("importance", "Importance of the settings");
  page.raw("<div class=\"card\"><ol class=\"bars\">\n");
  for (SettingImportance const& each : all) {
    if (each.importance == 0) continue;
    page.raw("<li><div class=\"row\"><span>" + Page::escaped(each.name) + "</span><b>" +
             value_text(each.share, Unit::percent) + "</b></div>" +
             parts::bar(0, each.share, "total") + "</li>\n");
  }
  page.raw("</ol>\n");
  page.paragraph(
      "Shares of importance (PED-ANOVA) for being among the best " +
          value_text(target, Unit::percent) + " by " + of.objectives.front().name + " of the " +
          std::to_string(trials.samples.size()) + " trials with a value at " +
          budget_text(of, trials.budget) +
          (of.unit == "steps" || of.unit == "samples" ? " " + of.unit : "") +
          ". A share says how much the best trials differ in this setting from all, one setting at "
          "a time.",
      "note");
  page.raw("</div>\n");
}

}  // namespace frugal::html

namespace frugal {

FRUGAL_INLINE std::string search_page(SearchResults const& of, std::string_view title,
                                      std::string_view code) {
  of.require();
  html::Page page;
  page.raw(html::search_style);
  page.figures(html::search_figures(of));
  if (of.winner) {
    std::string const flattery =
        detail::flattery_text(of, over_seeds(of, *of.winner), of.winner_by.value_or(0));
    page.paragraph("The winner is trial " + std::to_string(*of.winner) + ", " +
                   of.label(of.history.trials[*of.winner].candidate, 4) +
                   (flattery.empty() ? "." : ". " + flattery));
  }
  if (of.stopped_by == "budget") page.paragraph("The search ended because its budget is spent.");
  if (!of.stopped_by.empty() && of.stopped_by != "budget") {
    page.paragraph("The search was stopped by " + of.stopped_by + ".");
  }
  if (of.interrupted)
    page.paragraph("A worker was preempted: start the search again, and it goes on.");
  for (std::string const& each : of.warnings) page.paragraph("Warning: " + each);
  html::DrawnTrials const drawn(of);
  if (drawn.numbers.size() > drawn.failed_drawn) {
    page.section("values", "Values");
    page.raw("<div class=\"charts fixed pair\">\n");
    html::write_rung_curves(page, of, drawn);
    html::write_objectives(page, of, drawn);
    html::write_spending(page, of);
    page.raw("</div>\n");
  }
  if (!drawn.numbers.empty()) {
    page.section("settings", "Settings");
    html::write_parallel(page, of, drawn);
  }
  html::write_importance(page, of);
  html::write_finalists(page, of);
  if (!code.empty()) {
    page.section("code", "Code to paste");
    page.raw(
        "<div class=\"card\"><pre role=\"region\" tabindex=\"0\" aria-label=\"Code to paste\">" +
        html::Page::escaped(code) + "</pre></div>\n");
  }
  html::write_trials(page, of);
  html::write_rungs(page, of);
  html::write_failed(page, of);
  html::write_dropped(page, of);
  return std::move(page).html(title, "Report of a search");
}

}  // namespace frugal
