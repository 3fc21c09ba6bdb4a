// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <frugal/report/compare/results.hpp>

namespace frugal::detail {

/// A figure with about four digits, never in the exponent's form below a million.
std::string figure_text(double value);

/// "12.3 (11.9 to 13.0)"; the median alone if there is no spread.
std::string spread_text(std::optional<Spread> const& spread, double unit = 1);

/// Names of the metrics of any trial, in their first order.
std::vector<std::string> metric_names_of(ComparisonResults const& of);

class ComparisonTable {
 public:
  explicit ComparisonTable(ComparisonResults const& of) : of_(of) {}

  std::string text() const;

 private:
  std::vector<std::string> head() const;

  std::vector<std::string> cells(ComparedRecipe const& row) const;

  std::string notes() const;

  /// Where tune() has given rows objectives of their own.
  std::string losses_note() const;
  /// Of each row, each once.
  std::string warnings() const;

  ComparisonResults const& of_;
};

inline std::string table_of(ComparisonResults const& of) { return ComparisonTable(of).text(); }

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/report/compare/table.ipp>
#endif
