// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <frugal/base/number_texts.hpp>
#include <frugal/report/html/quantity.hpp>
#include <frugal/search/results/results.hpp>
#include <frugal/search/trials/history.hpp>

namespace frugal {

namespace detail {

/// The text of search_table().
class SearchTable {
 public:
  SearchTable(SearchResults const& of, std::size_t most) : of_(of), most_(most) {}

  std::string text() const;

 private:
  using Rows = std::vector<std::vector<std::string>>;

  std::vector<SearchTrial> const& list() const { return of_.history.trials; }

  static std::string columns_of(Rows const& rows);

  static std::string number_text(std::optional<double> value) {
    return value ? watch::short_number(*value) : "-";
  }
  static std::string dollars_text(std::optional<double> dollars) {
    return dollars ? html::money_text(*dollars) : "-";
  }
  bool priced() const { return of_.dollars_per_second().has_value(); }

  /// A column for each setting, unless they are many.
  bool apart() const { return of_.domain.settings.size() <= 5; }

  std::vector<std::string> head() const;

  std::vector<std::string> row(std::size_t rank, std::size_t number) const;

  std::string trials() const;

  std::string result() const;

  std::string finalists() const;

  std::string rungs() const;

  std::string failed() const;

  SearchResults const& of_;
  std::size_t most_;
};

}  // namespace detail

/// The results of a search for a terminal: the best trials with their settings, the winner and its value over
/// fresh seeds, the cost of each rung, failures, and which recipes are not possible.
///
/// @param rows  trials that are shown, and failed ones.
/// Errors  SettingsError for results that do not fit each other (SearchResults::require).
std::string search_table(SearchResults const& of, std::size_t rows = 20);

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/search/results/table.ipp>
#endif
