// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal {

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

#ifndef FRUGAL_COMPILED
#include <frugal/report/compare/trial.ipp>
#endif
