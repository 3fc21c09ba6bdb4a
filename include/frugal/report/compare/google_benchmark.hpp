// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <array>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/base/json_text.hpp>
#include <frugal/base/utf8.hpp>
#include <frugal/inline.hpp>
#include <frugal/report/compare/results.hpp>

namespace frugal::detail {

/// A comparison in the format of Google Benchmark's --benchmark_format=json: one benchmark per
/// recipe and one iteration entry per trial, then its mean, median, stddev and cv. Times are those
/// of a step, in milliseconds; the other figures are counters.
class GoogleBenchmark {
 public:
  explicit GoogleBenchmark(ComparisonResults const& of) : of_(of) {}

  FRUGAL_INLINE std::string text() {
    out_ = "{\n  \"context\": {\n";
    context();
    out_ += "\n  },\n  \"benchmarks\": [\n";
    for (std::size_t i = 0; i < of_.rows.size(); ++i) row(of_.rows[i], i);
    out_ += "\n  ]\n}\n";
    return std::move(out_);
  }

 private:
  using Fields = std::vector<std::pair<std::string, double>>;

  static double real(Trial const& trial) {
    return 1e3 * trial.step_seconds.value_or(trial.seconds);
  }
  static double processor(Trial const& trial) { return 1e3 * trial.processor_seconds.value_or(0); }
  FRUGAL_INLINE Fields counters(Trial const& trial) const {
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

  FRUGAL_INLINE void context() {
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
    field("date", std::string_view(stamp), "    ");
    field("host_name", std::string_view(host.data()));
    field("executable",
          std::string_view(std::filesystem::read_symlink("/proc/self/exe", unknown).string()));
    field("num_cpus", std::uint64_t{std::thread::hardware_concurrency()});
    std::array<double, 3> load{};
    int const known = getloadavg(load.data(), 3);
    out_ += ",\n    \"caches\": [],\n    \"load_avg\": [";
    for (int i = 0; i < known; ++i) {
      out_ += i == 0 ? "" : ",";
      append_json(out_, load[static_cast<std::size_t>(i)]);
    }
    out_ += ']';
#ifdef NDEBUG
    field("library_build_type", std::string_view("release"));
#else
    field("library_build_type", std::string_view("debug"));
#endif
    if (of_.target.given()) field("target", std::string_view(of_.target.text()));
    if (of_.dollars_per_hour) field("dollars_per_hour", *of_.dollars_per_hour);
  }

  FRUGAL_INLINE void row(ComparedRecipe const& row, std::size_t family) {
    for (Trial const& trial : row.trials) {
      begin(row, family, row.name, "iteration");
      field("repetition_index", std::uint64_t{trial.repeat});
      times(trial.steps, real(trial), processor(trial));
      for (auto const& [name, value] : counters(trial)) field(name, value);
      end();
    }
    if (row.failed()) {
      begin(row, family, row.name, "iteration");
      field("repetition_index", std::uint64_t{row.trials.size()});
      out_ += ",\n      \"error_occurred\": true";
      field("error_message", std::string_view(row.error));
      times(1, 0, 0);
      end();
    } else if (row.trials.size() > 1) {
      aggregates(row, family);
    }
  }

  FRUGAL_INLINE void aggregates(ComparedRecipe const& row, std::size_t family) {
    auto const all = [&](auto&& get) {
      std::vector<double> values;
      for (Trial const& trial : row.trials) values.push_back(get(trial));
      return values;
    };
    for (std::string_view const name : {"mean", "median", "stddev", "cv"}) {
      begin(row, family, row.name + "_" + std::string(name), "aggregate");
      field("aggregate_name", name);
      field("aggregate_unit", std::string_view(name == "cv" ? "percentage" : "time"));
      times(row.trials.size(), aggregate(name, all(real)), aggregate(name, all(processor)));
      for (auto const& [counter, first] : counters(row.trials.front())) {
        std::vector<double> values;
        for (Trial const& trial : row.trials) {
          for (auto const& [key, value] : counters(trial)) {
            if (key == counter) values.push_back(value);
          }
        }
        if (values.size() == row.trials.size()) field(counter, aggregate(name, values));
      }
      end();
    }
  }

  /// As Google Benchmark has them: the standard deviation of a sample, and its share of the mean.
  FRUGAL_INLINE static double aggregate(std::string_view name, std::vector<double> const& values) {
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

  FRUGAL_INLINE void begin(ComparedRecipe const& row, std::size_t family, std::string const& name,
                           std::string_view type) {
    out_ += out_.ends_with("[\n") ? "    {\n" : ",\n    {\n";
    field("name", std::string_view(name), "      ");
    field("family_index", std::uint64_t{family});
    field("per_family_instance_index", std::uint64_t{0});
    field("run_name", std::string_view(row.name));
    field("run_type", type);
    field("repetitions", std::uint64_t{of_.repeats});
    field("threads", std::uint64_t{1});
  }
  FRUGAL_INLINE void times(std::uint64_t iterations, double real_ms, double processor_ms) {
    field("iterations", iterations);
    field("real_time", real_ms);
    field("cpu_time", processor_ms);
    field("time_unit", std::string_view("ms"));
  }
  void end() { out_ += "\n    }"; }

  template <class Value>
  void field(std::string const& key, Value const& value, std::string_view before = ",\n      ") {
    out_ += before;
    append_json(out_, as_utf8(key));
    out_ += ": ";
    if constexpr (std::is_same_v<Value, std::string_view>) {
      append_json(out_, as_utf8(value));
    } else if constexpr (std::is_integral_v<Value>) {
      out_ += std::to_string(value);
    } else {
      append_json(out_, value);
    }
  }

  ComparisonResults const& of_;
  std::string out_;
};

inline std::string google_benchmark_of(ComparisonResults const& of) {
  return GoogleBenchmark(of).text();
}

}  // namespace frugal::detail
