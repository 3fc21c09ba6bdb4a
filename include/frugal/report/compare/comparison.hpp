// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>
#include <frugal/base/json_writer.hpp>
#include <frugal/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal {

/// The value of a validation metric that a comparison trains to. Without a metric there is none,
/// and every run goes to the end of its settings.
struct TargetMetric {
  std::string metric{};              ///< as validation names it: "accuracy", "loss"
  std::optional<double> at_least{};  ///< one of the two
  std::optional<double> at_most{};
  bool stop = true;  ///< end a run at its target; false: note the moment and train on

  bool given() const { return !metric.empty() || at_least || at_most; }
  bool reached(double value) const { return at_least ? value >= *at_least : value <= *at_most; }

  /// "accuracy >= 0.8"
  std::string text() const;

  /// SettingsError for a target without a metric, without a bound, with two, or with one that no
  /// value can be compared with.
  void require() const;
};

/// The median of some repeats, the least and the greatest of them.
struct Spread {
  double median = 0;
  double least = 0;
  double most = 0;
  std::size_t count = 0;  ///< repeats that it is of

  /// Nothing for no values. The median of an even number is the mean of the two in the middle.
  static std::optional<Spread> of(std::vector<double> values);

  /// The spread of the values times a factor above 0, such as a price.
  Spread times(double factor) const {
    return {median * factor, least * factor, most * factor, count};
  }
};

/// One run of one recipe in a comparison.
struct Trial {
  /// The first validation at the target.
  struct Reached {
    std::uint64_t steps = 0;
    std::uint64_t samples = 0;
    double seconds = 0;  ///< wall time since fit began, validations included
  };

  std::size_t repeat = 0;  ///< from 0; trials of one repeat ran one after the other
  std::uint64_t seed = 0;
  std::uint64_t steps = 0;
  std::uint64_t samples = 0;
  double seconds = 0;                         ///< wall time of the fit, validations included
  std::optional<double> step_seconds{};       ///< mean of the steps after the first, without
                                              ///< validations; nothing for a run of one step
  std::optional<double> processor_seconds{};  ///< likewise, of all threads of the process
  std::optional<std::int64_t> peak_bytes{};  ///< of tensors, above those before the module was made
  std::optional<Reached> reached{};
  std::vector<std::pair<std::string, double>> metrics{};  ///< at the end, on the validation data
  double train_loss = 0;      ///< weighted mean of the last epoch, or of what there was of it
  std::uint64_t weights = 0;  ///< hash_of_tensors() of the module at the end
  std::string stopped_by{};   ///< kind of the policy that ended it, if one has
  std::vector<std::string> warnings{};  ///< of the run, each once
  std::string objective{};  ///< its members as a text: a loss is compared with losses of the same

  std::optional<double> metric(std::string_view name) const;
};

/// A row of a comparison: a recipe and its trials.
struct ComparedRecipe {
  std::string name{};  ///< recipe_name(), with a number if an earlier row has the same
  std::vector<Trial> trials{};
  std::string error{};  ///< what it threw; then it was not run again

  bool failed() const { return !error.empty(); }
  /// Whether every trial ended in the bits of the other row's trial of the same seed.
  bool same_weights(ComparedRecipe const& other) const;

  /// The spread of a figure over the trials that have it: `figure(trial)` returns an optional.
  template <class Figure>
  std::optional<Spread> spread(Figure&& figure) const {
    std::vector<double> values;
    for (Trial const& trial : trials) {
      if (auto const value = figure(trial)) values.push_back(static_cast<double>(*value));
    }
    return Spread::of(std::move(values));
  }
  /// The spread of the ratios to a baseline's trials of the same repeat. Drifts of the machine
  /// between repeats cancel.
  template <class Figure>
  std::optional<Spread> ratio(ComparedRecipe const& baseline, Figure&& figure) const {
    std::vector<double> values;
    for (Trial const& trial : trials) {
      for (Trial const& other : baseline.trials) {
        if (other.repeat != trial.repeat) continue;
        auto const here = figure(trial);
        auto const there = figure(other);
        if (here && there && static_cast<double>(*there) > 0) {
          values.push_back(static_cast<double>(*here) / static_cast<double>(*there));
        }
      }
    }
    return Spread::of(std::move(values));
  }

  std::optional<Spread> step_seconds() const { return spread(of_step); }
  std::optional<Spread> peak_bytes() const { return spread(of_peak); }
  std::optional<Spread> metric(std::string_view metric_name) const {
    return spread([&](Trial const& trial) { return trial.metric(metric_name); });
  }
  /// Samples to the target, over the trials that reached it.
  std::optional<Spread> samples_to_target() const { return spread(of_samples); }
  std::optional<Spread> seconds_to_target() const { return spread(of_target); }
  std::size_t reached() const;

  // The figures, for spread() and ratio().
  static std::optional<double> of_step(Trial const& trial) { return trial.step_seconds; }
  static std::optional<std::int64_t> of_peak(Trial const& trial) { return trial.peak_bytes; }
  static std::optional<double> of_fit(Trial const& trial) { return trial.seconds; }
  static std::optional<double> of_target(Trial const& trial) {
    return trial.reached ? std::optional(trial.reached->seconds) : std::nullopt;
  }
  static std::optional<std::uint64_t> of_samples(Trial const& trial) {
    return trial.reached ? std::optional(trial.reached->samples) : std::nullopt;
  }
};

}  // namespace frugal

namespace frugal::detail {

/// The order of `count` recipes in each of `repeats` rounds. A round at random is followed by the
/// same in reverse, so that a steady drift of the machine hits each recipe of such a pair alike,
/// and no recipe always runs after the same other one.
std::vector<std::vector<std::size_t>> round_orders(std::size_t count, std::size_t repeats,
                                                   std::uint64_t seed);

}  // namespace frugal::detail

namespace frugal {

/// The figures of a comparison: a row for each recipe, the baseline first.
struct ComparisonResults {
  /// A recipe of a product that no Trainer accepts, and the sentence why.
  struct Dropped {
    std::string name{};
    std::string fault{};
  };

  std::vector<ComparedRecipe> rows{};
  std::vector<Dropped> dropped{};
  TargetMetric target{};
  std::optional<double> dollars_per_hour{};
  std::size_t repeats = 0;   ///< asked for
  bool interrupted = false;  ///< a run was preempted, by Ctrl-C or a notice: later ones are missing

  ComparedRecipe const& baseline() const { return rows.at(0); }
  /// SettingsError, which lists the rows, if none has this name.
  ComparedRecipe const& operator[](std::string_view name) const {
    std::string known;
    for (ComparedRecipe const& row : rows) {
      if (row.name == name) return row;
      known += (known.empty() ? "'" : ", '") + row.name + "'";
    }
    throw SettingsError({.what = "no recipe '" + std::string(name) + "' was compared",
                         .where = "Comparison",
                         .why = "there are: " + known,
                         .fix = "Use one of these names."});
  }

  /// Seconds that a row is paid for: to the target, or of the whole run without one. Nothing if a
  /// trial failed, or did not reach the target.
  std::optional<Spread> paid_seconds(ComparedRecipe const& row) const;
  /// The paid time in dollars; nothing without a price.
  std::optional<Spread> dollars(ComparedRecipe const& row) const;
  /// Ratios to the baseline of the same repeat: of a step's time, and of the time that is paid for.
  std::optional<Spread> step_ratio(ComparedRecipe const& row) const {
    return row.ratio(baseline(), ComparedRecipe::of_step);
  }
  std::optional<Spread> paid_ratio(ComparedRecipe const& row) const;
};

}  // namespace frugal

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

  std::string text(std::size_t width) const;

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

/// Of at most so many columns; 0: of the terminal behind stdout, or 100.
std::string table_of(ComparisonResults const& of, std::size_t width);

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
  /// The table, then the recipes that failed or were dropped, and why. The table has at most `width`
  /// columns, as far as its words let it; 0: as many as the terminal behind stdout, or 100.
  void print(std::ostream& out, std::size_t width = 0) const {
    out << detail::table_of(*this, width);
  }

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
