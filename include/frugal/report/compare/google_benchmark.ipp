// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/compare/google_benchmark.hpp>

#include <frugal/inline.hpp>

#include <unistd.h>

#include <array>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <numeric>
#include <optional>
#include <system_error>
#include <thread>

namespace frugal::detail {

FRUGAL_INLINE std::string GoogleBenchmark::text() {
  out_.object(JsonLayout::lines).key("context").object();
  context();
  out_.end().key("benchmarks").array();
  for (std::size_t i = 0; i < of_.rows.size(); ++i) row(of_.rows[i], i);
  return out_.str("\n");
}

FRUGAL_INLINE GoogleBenchmark::Fields GoogleBenchmark::counters(Trial const& trial) const {
  Fields all{{"seconds", trial.seconds},
             {"samples", static_cast<double>(trial.samples)},
             {"train_loss", trial.train_loss}};
  if (trial.peak_bytes) all.emplace_back("peak_bytes", static_cast<double>(*trial.peak_bytes));
  if (trial.reached) {
    all.emplace_back("samples_to_target", static_cast<double>(trial.reached->samples));
    all.emplace_back("seconds_to_target", trial.reached->seconds);
  }
  if (of_.dollars_per_hour && (trial.reached || !of_.target.given())) {
    double const paid = trial.reached ? trial.reached->seconds : trial.seconds;
    all.emplace_back("dollars", paid * *of_.dollars_per_hour / 3600);
  }
  for (auto const& [name, value] : trial.metrics) all.emplace_back("valid_" + name, value);
  return all;
}

FRUGAL_INLINE void GoogleBenchmark::context() {
  std::time_t const now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  std::array<char, 40> date{};
  std::strftime(date.data(), date.size(), "%Y-%m-%dT%H:%M:%S%z", &parts);
  std::string stamp = date.data();
  if (stamp.size() > 2) stamp.insert(stamp.size() - 2, ":");  // +00:00, as ISO 8601 has it
  std::array<char, HOST_NAME_MAX + 1> host{};
  gethostname(host.data(), host.size() - 1);
  std::error_code unknown;
  out_.add("date", stamp);
  out_.add("host_name", host.data());
  out_.add("executable", std::filesystem::read_symlink("/proc/self/exe", unknown).string());
  out_.add("num_cpus", std::thread::hardware_concurrency());
  std::array<double, 3> load{};
  int const known = getloadavg(load.data(), 3);
  out_.key("caches").array().end().key("load_avg").array(JsonLayout::tight);
  for (int i = 0; i < known; ++i) out_.value(load[static_cast<std::size_t>(i)]);
  out_.end();
#ifdef NDEBUG
  out_.add("library_build_type", "release");
#else
  out_.add("library_build_type", "debug");
#endif
  if (of_.target.given()) out_.add("target", of_.target.text());
  if (of_.dollars_per_hour) out_.add("dollars_per_hour", *of_.dollars_per_hour);
}

FRUGAL_INLINE void GoogleBenchmark::row(ComparedRecipe const& row, std::size_t family) {
  for (Trial const& trial : row.trials) {
    begin(row, family, row.name, "iteration");
    out_.add("repetition_index", trial.repeat);
    times(trial.steps, real(trial), processor(trial));
    for (auto const& [name, value] : counters(trial)) out_.add(name, value);
    out_.end();
  }
  if (row.failed()) {
    begin(row, family, row.name, "iteration");
    out_.add("repetition_index", row.trials.size());
    out_.add("error_occurred", true);
    out_.add("error_message", row.error);
    times(1, 0, 0);
    out_.end();
  } else if (row.trials.size() > 1) {
    aggregates(row, family);
  }
}

FRUGAL_INLINE void GoogleBenchmark::aggregates(ComparedRecipe const& row, std::size_t family) {
  auto const all = [&](auto&& get) {
    std::vector<double> values;
    for (Trial const& trial : row.trials) values.push_back(get(trial));
    return values;
  };
  for (std::string_view const name : {"mean", "median", "stddev", "cv"}) {
    begin(row, family, row.name + "_" + std::string(name), "aggregate");
    out_.add("aggregate_name", name);
    out_.add("aggregate_unit", name == "cv" ? "percentage" : "time");
    times(row.trials.size(), aggregate(name, all(real)), aggregate(name, all(processor)));
    for (auto const& [counter, first] : counters(row.trials.front())) {
      std::vector<double> values;
      for (Trial const& trial : row.trials) {
        for (auto const& [key, value] : counters(trial)) {
          if (key == counter) values.push_back(value);
        }
      }
      if (values.size() == row.trials.size()) out_.add(counter, aggregate(name, values));
    }
    out_.end();
  }
}

FRUGAL_INLINE double GoogleBenchmark::aggregate(std::string_view name,
                                                std::vector<double> const& values) {
  if (name == "median") return Spread::of(values)->median;
  auto const count = static_cast<double>(values.size());
  double const mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  if (name == "mean") return mean;
  double squares = 0;
  for (double const value : values) squares += (value - mean) * (value - mean);
  double const deviation = std::sqrt(squares / (count - 1));
  if (name == "stddev") return deviation;
  return mean > 0 ? deviation / mean : 0;
}

FRUGAL_INLINE void GoogleBenchmark::begin(ComparedRecipe const& row, std::size_t family,
                                          std::string const& name, std::string_view type) {
  out_.object();
  out_.add("name", name);
  out_.add("family_index", family);
  out_.add("per_family_instance_index", 0);
  out_.add("run_name", row.name);
  out_.add("run_type", type);
  out_.add("repetitions", of_.repeats);
  out_.add("threads", 1);
}

FRUGAL_INLINE void GoogleBenchmark::times(std::uint64_t iterations, double real_ms,
                                          double processor_ms) {
  out_.add("iterations", iterations);
  out_.add("real_time", real_ms);
  out_.add("cpu_time", processor_ms);
  out_.add("time_unit", "ms");
}

}  // namespace frugal::detail
