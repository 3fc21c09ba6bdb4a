// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>

#include <frugal/core/run/metrics.hpp>
#include <frugal/error.hpp>
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

[[noreturn]] void refuse_unpriced(char const* why);

/// One value for each objective of the search, all to be minimised. ObjectiveError for one that nothing measures.
ObjectiveValues objective_values(SearchSettings const& search, MeasuredTrial const& trial,
                                 torch::nn::Module& module);

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

#ifndef FRUGAL_COMPILED
#include <frugal/search/objective_values.ipp>
#endif
