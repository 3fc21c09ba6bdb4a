// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <frugal/report/html/chart.hpp>
#include <frugal/search/results/results.hpp>
#include <frugal/search/trials/candidate.hpp>

// The charts of a search's page: values by rung, two objectives, the best value by spending, and settings.
namespace frugal::html {

/// A budget of a rung in the results' unit.
std::string budget_text(SearchResults const& of, std::uint64_t budget);

/// The unit where budget_text() does not say it: ", steps".
inline std::string budget_unit(SearchResults const& of) {
  return of.unit == "steps" || of.unit == "samples" ? ", " + of.unit : "";
}

/// Budgets of all rungs that a trial has ended, ascending.
std::vector<std::uint64_t> reached_budgets(SearchResults const& of);

/// The trials that are drawn, the best first: of those without a further rung, and of those that failed, so
/// many as a picture can show.
struct DrawnTrials {
  static constexpr std::size_t most_of_a_kind = 250;

  std::vector<std::size_t> numbers{};
  std::size_t short_ones = 0, short_drawn = 0;  ///< that ended their first rung alone
  std::size_t failed_ones = 0, failed_drawn = 0;

  explicit DrawnTrials(SearchResults const& of);

  /// How many are left out, as sentences; empty if all are drawn.
  std::vector<std::string> notes() const;
};

/// "trial 17: AdamW + BF16, lr 0.0031, accuracy 0.93".
std::string trial_title(SearchResults const& of, std::size_t number);

/// "higher is better".
inline char const* direction_text(SearchObjective const& of) {
  return of.maximise ? "higher is better" : "lower is better";
}

namespace parts {

/// The first objective of the drawn trials at each budget.
Table rung_values(SearchResults const& of, DrawnTrials const& drawn,
                  std::vector<std::uint64_t> const& budgets);

}  // namespace parts

/// A line for each trial over the budgets of its rungs. Nothing if no trial has ended two.
void write_rung_curves(Page& page, SearchResults const& of, DrawnTrials const& drawn);

/// The first two objectives of each trial, with the Pareto front. Nothing with one objective.
void write_objectives(Page& page, SearchResults const& of, DrawnTrials const& drawn);

/// The best value so far over what all trials together have cost: dollars, or seconds if no cost is known.
void write_spending(Page& page, SearchResults const& of);

/// Parallel coordinates: an axis for the recipe, for each setting and for the first objective, and a line for
/// each trial. Nothing if no trial is drawn, or if there is nothing to choose.
void write_parallel(Page& page, SearchResults const& of, DrawnTrials const& drawn);

}  // namespace frugal::html

#ifndef FRUGAL_COMPILED
#include <frugal/search/results/page_charts.ipp>
#endif
