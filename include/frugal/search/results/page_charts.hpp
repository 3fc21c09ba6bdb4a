// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <frugal/base/html_text.hpp>
#include <frugal/report/html/page.hpp>
#include <frugal/search/results/page_plot.hpp>
#include <frugal/search/results/results.hpp>
#include <frugal/search/trials/candidate.hpp>

// The charts of a search's page: values by rung, two objectives, and the best value by spending.
namespace frugal::html {

/// A budget of a rung in the results' unit.
std::string budget_text(SearchResults const& of, std::uint64_t budget);

/// The unit where budget_text() does not say it: ", steps".
inline std::string budget_unit(SearchResults const& of) {
  return of.unit == "steps" || of.unit == "samples" ? ", " + of.unit : "";
}

/// Budgets of all rungs that a trial has ended, ascending.
std::vector<std::uint64_t> reached_budgets(SearchResults const& of);

namespace parts {

/// The first objective of the drawn trials at each budget, as a table.
void rung_values(Page& page, SearchResults const& of, std::vector<std::size_t> const& trials,
                 std::vector<std::uint64_t> const& budgets);

}  // namespace parts

/// A line for each trial over the budgets of its rungs. Nothing if no trial has ended two.
void write_rung_curves(Page& page, SearchResults const& of, DrawnTrials const& drawn);

/// The first two objectives of each trial, with the Pareto front. Nothing with one objective.
void write_objectives(Page& page, SearchResults const& of, DrawnTrials const& drawn);

/// The best value so far over what all trials together have cost: dollars, or seconds if no cost is known.
void write_spending(Page& page, SearchResults const& of);

}  // namespace frugal::html

// Parallel coordinates: an axis for the recipe, for each setting and for the first objective, and a line for
// each trial. A line skips the axes of settings that its recipe does not have.
namespace frugal::html {

/// Where a value is on an axis of all values, from 0 to 1.
double place_of(Distribution const& of, double value);

/// Labels of an axis: each name, or both ends and a few numbers between them.
std::vector<PlotTick> axis_ticks(Distribution const& of);

namespace parts {

/// An axis, and where each drawn trial is on it.
struct ParallelAxis {
  std::string name;
  double band = 0;  ///< of a name: lines are spread over it, or else they would lie on each other
  std::vector<PlotTick> ticks;
  std::vector<std::optional<double>> places;
};

std::vector<ParallelAxis> parallel_axes(SearchResults const& of,
                                        std::vector<std::size_t> const& trials);

}  // namespace parts

/// Nothing if no trial is drawn, or if there is nothing to choose.
void write_parallel(Page& page, SearchResults const& of, DrawnTrials const& drawn);

}  // namespace frugal::html

#ifndef FRUGAL_COMPILED
#include <frugal/search/results/page_charts.ipp>
#endif
