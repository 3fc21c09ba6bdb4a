// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/compare/comparison.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/base/terminal.hpp>
#include <frugal/base/text_width.hpp>
#include <frugal/inline.hpp>

#include <unistd.h>

#include <array>
#include <climits>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <numeric>
#include <random>
#include <system_error>
#include <thread>

namespace frugal {

FRUGAL_INLINE std::string TargetMetric::text() const {
  return metric + (at_least ? " >= " : " <= ") +
         detail::general(at_least ? *at_least : at_most.value_or(0), 6);
}

FRUGAL_INLINE void TargetMetric::require() const {
  if (!given()) return;
  if (metric.empty()) {
    throw SettingsError({.what = "the target names no metric",
                         .where = "TargetMetric::metric",
                         .why = "there is nothing to compare with the bound",
                         .fix = "Name a metric of Validate, such as \"accuracy\", or \"loss\"."});
  }
  if (at_least.has_value() == at_most.has_value()) {
    throw SettingsError(
        {.what = std::string("the target has ") + (at_least ? "two bounds" : "no bound"),
         .where = "TargetMetric of " + metric,
         .why = "a target is reached at one bound",
         .fix = "Set at_least for a metric that grows, or at_most for a loss."});
  }
  if (!std::isfinite(at_least ? *at_least : *at_most)) {
    throw SettingsError({.what = "the bound is not a finite number",
                         .where = "TargetMetric of " + metric,
                         .why = "no run reaches it, or every one does",
                         .fix = "Give a finite number."});
  }
}

FRUGAL_INLINE std::optional<Spread> Spread::of(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  std::size_t const half = values.size() / 2;
  double const median =
      values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
  return Spread{median, values.front(), values.back(), values.size()};
}

FRUGAL_INLINE std::optional<double> Trial::metric(std::string_view name) const {
  for (auto const& [key, value] : metrics) {
    if (key == name) return value;
  }
  return std::nullopt;
}

FRUGAL_INLINE bool ComparedRecipe::same_weights(ComparedRecipe const& other) const {
  if (trials.empty() || trials.size() != other.trials.size()) return false;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    if (trials[i].weights != other.trials[i].weights) return false;
  }
  return true;
}

FRUGAL_INLINE std::size_t ComparedRecipe::reached() const {
  std::size_t count = 0;
  for (Trial const& trial : trials) count += trial.reached ? 1U : 0U;
  return count;
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE std::vector<std::vector<std::size_t>> round_orders(std::size_t count,
                                                                 std::size_t repeats,
                                                                 std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<std::vector<std::size_t>> all;
  for (std::size_t repeat = 0; repeat < repeats; ++repeat) {
    if (repeat % 2 == 1) {
      std::reverse(order.begin(), order.end());
    } else {
      // std::shuffle may differ between libraries; this does not.
      for (std::size_t left = count; left > 1; --left) {
        std::swap(order[left - 1], order[random() % left]);
      }
    }
    all.push_back(order);
  }
  return all;
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE std::optional<Spread> ComparisonResults::paid_seconds(
    ComparedRecipe const& row) const {
  if (row.failed() || row.trials.empty()) return std::nullopt;
  if (!target.given()) return row.spread(ComparedRecipe::of_fit);
  return row.reached() == row.trials.size() ? row.seconds_to_target() : std::nullopt;
}

FRUGAL_INLINE std::optional<Spread> ComparisonResults::dollars(ComparedRecipe const& row) const {
  auto const seconds = paid_seconds(row);
  if (!seconds || !dollars_per_hour) return std::nullopt;
  return seconds->times(*dollars_per_hour / 3600);
}

FRUGAL_INLINE std::optional<Spread> ComparisonResults::paid_ratio(ComparedRecipe const& row) const {
  if (!paid_seconds(row)) return std::nullopt;
  return target.given() ? row.ratio(baseline(), ComparedRecipe::of_target)
                        : row.ratio(baseline(), ComparedRecipe::of_fit);
}

}  // namespace frugal

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

FRUGAL_INLINE std::string figure_text(double value) {
  double const size = std::abs(value);
  int digits = 0;
  if (size > 0 && size < 1000) {
    // 0.000123 needs seven digits after the point to show three.
    digits = std::min(10, static_cast<int>(std::ceil(3 - std::log10(size))));
  }
  return fixed(value, std::max(0, digits));
}

FRUGAL_INLINE std::string spread_text(std::optional<Spread> const& spread, double unit) {
  if (!spread) return "-";
  std::string const median = figure_text(spread->median / unit);
  if (spread->count == 1 || spread->least == spread->most) return median;
  return median + " (" + figure_text(spread->least / unit) + " to " +
         figure_text(spread->most / unit) + ")";
}

FRUGAL_INLINE std::vector<std::string> metric_names_of(ComparisonResults const& of) {
  std::vector<std::string> names;
  for (ComparedRecipe const& row : of.rows) {
    for (Trial const& trial : row.trials) {
      for (auto const& [name, value] : trial.metrics) {
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
      }
    }
  }
  return names;
}

FRUGAL_INLINE std::string table_of(ComparisonResults const& of, std::size_t width) {
  if (width == 0) width = isatty(STDOUT_FILENO) != 0 ? watch::terminal_size(stdout).columns : 100;
  return ComparisonTable(of).text(width);
}

FRUGAL_INLINE std::string ComparisonTable::text(std::size_t width) const {
  std::vector<std::vector<std::string>> rows{head()};
  for (ComparedRecipe const& row : of_.rows) {
    if (!row.trials.empty()) rows.push_back(cells(row));
  }
  std::string out = watch::columns(rows, watch::widths_within(rows, width));
  return out + notes();
}

FRUGAL_INLINE std::vector<std::string> ComparisonTable::head() const {
  std::vector<std::string> cells{"recipe", "ms/step", "of baseline", "peak MiB"};
  if (of_.target.given()) {
    cells.insert(cells.end(), {"samples to " + of_.target.text(), "seconds to it", "of baseline"});
  } else {
    cells.insert(cells.end(), {"seconds", "of baseline"});
  }
  if (of_.dollars_per_hour) cells.emplace_back("USD");
  for (std::string const& name : metric_names_of(of_)) cells.push_back(name);
  return cells;
}

FRUGAL_INLINE std::vector<std::string> ComparisonTable::cells(ComparedRecipe const& row) const {
  bool const first = &row == &of_.rows.front();
  auto const ratio = [&](std::optional<Spread> const& spread) {
    return first ? std::string("1") : spread_text(spread);
  };
  std::vector<std::string> cells{row.name, spread_text(row.step_seconds(), 1e-3),
                                 ratio(of_.step_ratio(row)),
                                 spread_text(row.peak_bytes(), 1024.0 * 1024.0)};
  if (of_.target.given()) {
    bool const all = row.reached() == row.trials.size();
    std::string const missed =
        "reached in " + std::to_string(row.reached()) + " of " + std::to_string(row.trials.size());
    cells.push_back(all ? spread_text(row.samples_to_target()) : missed);
  }
  cells.push_back(spread_text(of_.paid_seconds(row)));
  cells.push_back(ratio(of_.paid_ratio(row)));
  if (of_.dollars_per_hour) cells.push_back(spread_text(of_.dollars(row)));
  for (std::string const& name : metric_names_of(of_))
    cells.push_back(spread_text(row.metric(name)));
  return cells;
}

FRUGAL_INLINE std::string ComparisonTable::notes() const {
  std::string out;
  if (of_.repeats > 1) {
    out += "\nMedian (least to greatest) of " + std::to_string(of_.repeats) +
           " repeats. Ratios are of runs of the same repeat; where their range includes 1, no "
           "difference is seen.\n";
  } else {
    out += "\nOne run each: no spread is known, so a difference may be chance.\n";
  }
  for (std::size_t i = 1; i < of_.rows.size(); ++i) {
    if (of_.rows[i].same_weights(of_.rows[0])) {
      out += "'" + of_.rows[i].name + "' ends in the same weights as the baseline, to the bit.\n";
    }
  }
  for (ComparedRecipe const& row : of_.rows) {
    if (row.failed()) out += "'" + row.name + "' failed: " + row.error + '\n';
  }
  out += losses_note() + warnings();
  for (ComparisonResults::Dropped const& each : of_.dropped) {
    out += "'" + each.name + "' is not possible. " + each.fault + '\n';
  }
  if (of_.interrupted) out += "The comparison was interrupted: later runs are missing.\n";
  return out;
}

FRUGAL_INLINE std::string ComparisonTable::losses_note() const {
  std::string const* first = nullptr;
  for (ComparedRecipe const& row : of_.rows) {
    for (Trial const& trial : row.trials) {
      if (first == nullptr) first = &trial.objective;
      if (trial.objective == *first) continue;
      return "The objectives of '" + row.name +
             "' and of the rows above it have other members: "
             "their losses are not comparable, compare metrics.\n";
    }
  }
  return {};
}

FRUGAL_INLINE std::string ComparisonTable::warnings() const {
  std::string out;
  for (ComparedRecipe const& row : of_.rows) {
    std::vector<std::string> told;
    for (Trial const& trial : row.trials) {
      for (std::string const& each : trial.warnings) {
        if (std::find(told.begin(), told.end(), each) != told.end()) continue;
        told.push_back(each);
        out += "Warning of '" + row.name + "': " + each + '\n';
      }
    }
  }
  return out;
}

FRUGAL_INLINE std::vector<std::string> parts_of_name(std::string_view name) {
  std::vector<std::string> parts{""};
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (depth == 0 && name.substr(i, 3) == " + ") {
      parts.emplace_back();
      i += 2;
      continue;
    }
    if (name[i] == '<') ++depth;
    if (name[i] == '>') --depth;
    parts.back() += name[i];
  }
  return parts;
}

FRUGAL_INLINE std::string lever_name(std::string const& name, std::string const& before) {
  std::vector<std::string> const old = parts_of_name(before);
  std::vector<std::string> left = old;
  std::string added;
  for (std::string const& part : parts_of_name(name)) {
    if (auto const at = std::find(left.begin(), left.end(), part); at != left.end()) {
      left.erase(at);
    } else {
      added += (added.empty() ? "+ " : " + ") + part;
    }
  }
  // "defaults" names a recipe without levers.
  bool const only_adds = left.empty() || before == "defaults";
  return only_adds && !added.empty() ? added : name;
}

FRUGAL_INLINE std::string waterfall_of(ComparisonResults const& of, std::string const& title) {
  bool const priced = of.dollars_per_hour.has_value();
  std::string const shown =
      !title.empty() ? title
                     : (of.target.given() ? "Cost to reach " + of.target.text() : "Cost of a run");
  JsonWriter out;
  out.object().add("version", 1).add("currency", "USD").add("title", shown);
  out.add("unit", priced ? "USD" : "hours").key("steps").array();
  for (std::size_t i = 0; i < of.rows.size(); ++i) {
    ComparedRecipe const& row = of.rows[i];
    auto const seconds = of.paid_seconds(row);
    if (!seconds) {
      std::string const why = row.failed() ? row.error
                                           : std::to_string(row.reached()) + " of " +
                                                 std::to_string(row.trials.size()) +
                                                 " runs reached " + of.target.text();
      throw TargetError(
          {.what = "the recipe '" + row.name + "' has no cost to show",
           .where = "Comparison::levers",
           .why = why,
           .fix = "Train for more epochs, lower the target, or leave the recipe out."});
    }
    double const hours = seconds->median / 3600;
    out.object().add("name", i == 0 ? row.name : lever_name(row.name, of.rows[i - 1].name));
    out.add("value", priced ? hours * *of.dollars_per_hour : hours).add("hours", hours);
    out.add("note", "median of " + std::to_string(seconds->count) + " runs").end();
  }
  return out.str("\n");
}

}  // namespace frugal::detail
