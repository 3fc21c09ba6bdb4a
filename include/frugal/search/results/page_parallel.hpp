// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <frugal/base/html_text.hpp>
#include <frugal/report/html/page.hpp>
#include <frugal/search/results/page_plot.hpp>
#include <frugal/search/results/results.hpp>
#include <frugal/search/trials/distribution.hpp>

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
#include <frugal/search/results/page_parallel.ipp>
#endif
