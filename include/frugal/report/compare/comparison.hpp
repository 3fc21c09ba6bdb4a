// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <ostream>
#include <string>

#include <frugal/base/whole_file.hpp>
#include <frugal/report/compare/google_benchmark.hpp>
#include <frugal/report/compare/results.hpp>
#include <frugal/report/compare/table.hpp>
#include <frugal/report/compare/waterfall.hpp>

namespace frugal {

/// The result of compare(): a row for each recipe, the baseline first.
struct [[nodiscard]] Comparison : ComparisonResults {
  /// The table, then the recipes that failed or were dropped, and why.
  void print(std::ostream& out) const { out << detail::table_of(*this); }

  /// JSON as Google Benchmark writes it, for its compare.py and everything else that reads it: one
  /// benchmark per recipe, whose time is that of a step. StoreError if the file cannot be written.
  void json(std::filesystem::path const& file) const {
    detail::write_whole_file(file, json_text(), detail::Durable::no);
  }
  std::string json_text() const { return detail::google_benchmark_of(*this); }

  /// levers.json, the waterfall of report.html: each row is taken as the row before it with one
  /// lever more. TargetError if a row failed or missed the target, StoreError if the file cannot be
  /// written.
  void levers(std::filesystem::path const& file, std::string const& title = {}) const {
    detail::write_whole_file(file, levers_text(title), detail::Durable::no);
  }
  std::string levers_text(std::string const& title = {}) const {
    return detail::waterfall_of(*this, title);
  }

  friend std::ostream& operator<<(std::ostream& out, Comparison const& comparison) {
    comparison.print(out);
    return out;
  }
};

}  // namespace frugal
