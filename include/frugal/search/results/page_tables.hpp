// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <frugal/report/html/page.hpp>
#include <frugal/report/html/quantity.hpp>
#include <frugal/search/results/over_seeds.hpp>
#include <frugal/search/results/results.hpp>

// The tables of a search's page. A section that has no rows is left out.
namespace frugal::html {

namespace parts {

inline std::string number_cell(std::optional<double> value) {
  return value ? short_number(*value) : no_value;
}
/// A number of a trial, with what it is.
inline std::string marked_cell(std::size_t number, std::string const& mark) {
  if (mark.empty()) return std::to_string(number);
  return "<span class=\"one\">" + std::to_string(number) + " <b>" + mark + "</b></span>";
}
inline std::string long_cell(std::string const& text) {
  return "<span class=\"long\">" + Page::escaped(text) + "</span>";
}
inline std::string spread_cell(std::optional<SeedSpread> const& of) {
  return of ? detail::seed_spread_text(*of, "\xc2\xb1") : no_value;
}

}  // namespace parts

/// All trials but repeats, the best first; of very many the best thousand.
void write_trials(Page& page, SearchResults const& of);

/// Finalists with their values over fresh seeds.
void write_finalists(Page& page, SearchResults const& of);

/// The cost of each rung, and of the repeats.
void write_rungs(Page& page, SearchResults const& of);

/// Trials that failed, and why.
void write_failed(Page& page, SearchResults const& of);

/// Recipes that the search has left out, and why.
void write_dropped(Page& page, SearchResults const& of);

}  // namespace frugal::html

#ifndef FRUGAL_COMPILED
#include <frugal/search/results/page_tables.ipp>
#endif
