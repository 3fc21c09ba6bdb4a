// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/core/libtorch/modes.hpp>
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

/// A setting by which no trial can be trained or measured: an error of the search, and not of a trial.
struct ObjectiveError : SettingsError {
  using SettingsError::SettingsError;
};

[[noreturn]] FRUGAL_INLINE void refuse_unpriced(char const* why) {
  throw ObjectiveError({.what = "dollars are an objective or a budget, and there is no price",
                        .where = "SearchSettings",
                        .why = why,
                        .fix =
                            "Set SearchSettings::dollars_per_hour, or add CostMeter with a price "
                            "in USD to SearchJob."});
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

/// SettingsError for an objective that no recipe can measure, as far as types show, and for one or a budget in
/// dollars without a price.
///
/// `recipes`: the search's entrants.
template <class Recipes>
void require_objectives(SearchSettings const& search, Recipes const& recipes) {
  using Recipe = typename Recipes::value_type;
  bool const priced =
      search.dollars_per_hour || std::ranges::all_of(recipes, &Recipe::has_cost_meter);
  if (search.budget.dollars && !priced) refuse_unpriced("the cost of a trial is not known");
  for (SearchObjective const& each : search.objectives) {
    if (search.measures.contains(each.name)) continue;
    if (each.name == "dollars" && !priced) refuse_unpriced("a trial without one costs nothing");
    std::initializer_list<std::string_view> const own{"train_loss", "bytes", "seconds", "dollars"};
    if (std::ranges::count(own, each.name) != 0) continue;
    for (Recipe const& recipe : recipes) {
      if (recipe.may_measure(each.name)) continue;
      throw SettingsError(
          {.what = "nothing measures the objective '" + each.name + "'",
           .where = "SearchSettings::objectives",
           .why = "the recipe '" + recipe.name + "' has no metric of that name",
           .fix = "Add it to Validate, or a function to SearchSettings::measures."});
    }
  }
}

}  // namespace frugal::detail
