// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <frugal/base/file.hpp>
#include <frugal/base/json_writer.hpp>
#include <frugal/report/compare/results.hpp>

namespace frugal::detail {

/// A comparison in the format of Google Benchmark's --benchmark_format=json: one benchmark per
/// recipe and one iteration entry per trial, then its mean, median, stddev and cv. Times are those
/// of a step, in milliseconds; the other figures are counters.
class GoogleBenchmark {
 public:
  explicit GoogleBenchmark(ComparisonResults const& of) : of_(of) {}

  std::string text();

 private:
  using Fields = std::vector<std::pair<std::string, double>>;

  static double real(Trial const& trial) {
    return 1e3 * trial.step_seconds.value_or(trial.seconds);
  }
  static double processor(Trial const& trial) { return 1e3 * trial.processor_seconds.value_or(0); }
  Fields counters(Trial const& trial) const;

  void context();

  void row(ComparedRecipe const& row, std::size_t family);

  void aggregates(ComparedRecipe const& row, std::size_t family);

  /// As Google Benchmark has them: the standard deviation of a sample, and its share of the mean.
  static double aggregate(std::string_view name, std::vector<double> const& values);

  void begin(ComparedRecipe const& row, std::size_t family, std::string const& name,
             std::string_view type);
  void times(std::uint64_t iterations, double real_ms, double processor_ms);
  ComparisonResults const& of_;
  JsonWriter out_;
};

inline std::string google_benchmark_of(ComparisonResults const& of) {
  return GoogleBenchmark(of).text();
}

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

/// The policies in a recipe's name: "AdamW + Schedule<Warmup<2> + Cosine>" has two.
std::vector<std::string> parts_of_name(std::string_view name);

/// What a row adds to the row before it: "+ BF16"; its whole name if it also lacks something.
std::string lever_name(std::string const& name, std::string const& before);

/// levers.json. Without a price the values are hours.
std::string waterfall_of(ComparisonResults const& of, std::string const& title);

}  // namespace frugal::detail

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

#ifndef FRUGAL_COMPILED
#include <frugal/report/compare/comparison.ipp>
#endif
