// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>

#include <optional>
#include <string>
#include <utility>

#include <frugal/core/run/metrics.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/search/job.hpp>
#include <frugal/search/trials/history.hpp>

namespace frugal::detail {

/// The figures of a trial at the end of a rung.
struct MeasuredTrial {
  std::string recipe{};
  Metrics metrics{};  ///< of the validation data
  double train_loss = 0;
  double seconds = 0;               ///< of the trial so far
  std::optional<double> dollars{};  ///< by its CostMeter, if it has one
};

/// An objective that nothing measures: an error of the search, and not of a trial.
struct ObjectiveError : MetricError {
  using MetricError::MetricError;
};

/// Bytes of parameters and buffers.
FRUGAL_INLINE double bytes_of(torch::nn::Module const& module) {
  double all = 0;
  for (auto const& each : module.parameters()) all += static_cast<double>(each.nbytes());
  for (auto const& each : module.buffers()) {
    if (each.defined()) all += static_cast<double>(each.nbytes());
  }
  return all;
}

/// One value for each objective of the search, all to be minimised. ObjectiveError for one that nothing measures.
FRUGAL_INLINE ObjectiveValues objective_values(SearchSettings const& search,
                                               MeasuredTrial const& trial,
                                               torch::nn::Module& module) {
  ObjectiveValues values;
  for (SearchObjective const& each : search.objectives) {
    std::optional<double> value;
    for (auto const& [name, measured] : trial.metrics) {
      if (name == each.name) value = measured;
    }
    if (auto const own = search.measures.find(each.name); own != search.measures.end()) {
      value = own->second(module);
    } else if (each.name == "train_loss") {
      value = trial.train_loss;
    } else if (each.name == "bytes") {
      value = bytes_of(module);
    } else if (each.name == "seconds") {
      value = trial.seconds;
    } else if (each.name == "dollars") {
      double const price = search.dollars_per_hour.value_or(0);
      value = trial.dollars.value_or(trial.seconds / 3600 * price);
    }
    if (!value) {
      throw ObjectiveError(
          {.what = "nothing measures the objective '" + each.name + "'",
           .where = "SearchSettings::objectives",
           .why = "the validation of '" + trial.recipe + "' has no metric of that name",
           .fix = "Add the metric to Validate, or a function to "
                  "SearchSettings::measures."});
    }
    values.push_back(each.to_minimise(*value));
  }
  return values;
}

}  // namespace frugal::detail
