// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <frugal/error.hpp>
#include <frugal/report/compare/target_metric.hpp>
#include <frugal/report/compare/trial.hpp>

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

#ifndef FRUGAL_COMPILED
#include <frugal/report/compare/results.ipp>
#endif
