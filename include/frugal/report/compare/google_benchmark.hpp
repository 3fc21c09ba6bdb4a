// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/report/compare/google_benchmark.ipp>
#endif
