// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <frugal/base/file.hpp>
#include <frugal/base/html_text.hpp>
#include <frugal/report/html/page.hpp>
#include <frugal/report/html/quantity.hpp>
#include <frugal/search/results/importance.hpp>
#include <frugal/search/results/results.hpp>

namespace frugal {

namespace html {

/// Key figures: the winner, its values, and the cost of the search.
std::vector<std::pair<std::string, std::string>> search_figures(SearchResults const& of);

/// Results of trials at the highest budget that enough of them have reached. Complete trials alone would be
/// few, and have been selected.
struct ComparableTrials {
  std::uint64_t budget = 0;
  std::vector<ImportanceSample> samples{};

  explicit ComparableTrials(SearchResults const& of);
};

/// A bar for each setting. Nothing for fewer than ten trials, of which nothing is known.
void write_importance(Page& page, SearchResults const& of);

}  // namespace html

/// The results of a search as one HTML page that needs no other file and no network: the winner and the cost
/// of the search, curves by rung, settings against values, importances, and tables of everything. With
/// `code`, such as winner_code() gives, the page has it to copy.
///
/// Of thousands of trials some are left out of pictures, and the page says which.
///
/// Errors  SettingsError for results that do not fit each other (SearchResults::require).
std::string search_page(SearchResults const& of, std::string_view title,
                        std::string_view code = {});

/// Writes the page, replacing a file of that name at once. StoreError if that fails.
inline void write_search_page(std::filesystem::path const& file, SearchResults const& of,
                              std::string_view title, std::string_view code = {}) {
  detail::write_whole_file(file, search_page(of, title, code), detail::Durable::yes);
}

}  // namespace frugal

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
#include <frugal/search/results/page.ipp>
#endif
