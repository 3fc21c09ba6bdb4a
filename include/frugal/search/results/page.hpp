// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <frugal/base/file.hpp>
#include <frugal/report/html/quantity.hpp>
#include <frugal/search/results/importance.hpp>
#include <frugal/search/results/results.hpp>

namespace frugal {

namespace html {

/// Results of trials at the highest budget that enough of them have reached. Complete trials alone would be
/// few, and have been selected.
struct ComparableTrials {
  std::uint64_t budget = 0;
  std::vector<ImportanceSample> samples{};

  explicit ComparableTrials(SearchResults const& of);
};

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

#ifndef FRUGAL_COMPILED
#include <frugal/search/results/page.ipp>
#endif
