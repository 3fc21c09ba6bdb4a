// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/objective_values.hpp>

#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/core/libtorch/modes.hpp>
#include <frugal/inline.hpp>

#include <utility>

namespace frugal::detail {

FRUGAL_INLINE void refuse_unpriced(char const* why) {
  throw ObjectiveError({.what = "dollars are an objective or a budget, and there is no price",
                        .where = "SearchSettings",
                        .why = why,
                        .fix =
                            "Set SearchSettings::dollars_per_hour, or add CostMeter with a price "
                            "in USD to SearchJob."});
}

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
      EvaluationMode const mode(module);
      at::NoGradGuard const no_gradients;
      value = own->second(module);
    } else if (each.name == "train_loss") {
      value = trial.train_loss;
    } else if (each.name == "bytes") {
      value = static_cast<double>(bytes_of_tensors(module));
    } else if (each.name == "seconds") {
      value = trial.seconds;
    } else if (each.name == "dollars") {
      value = trial.dollars;
      if (!value && search.dollars_per_hour) {
        value = trial.seconds / 3600 * *search.dollars_per_hour;
      }
      if (!value) refuse_unpriced("CostMeter has no price in US dollars");
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
