// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <frugal/search/trials/candidate.hpp>
#include <frugal/search/trials/history.hpp>

namespace frugal {

/// How much a setting matters for being among the best trials.
struct SettingImportance {
  std::string name{};      ///< of a setting, or "recipe"
  double importance = 0;   ///< PED-ANOVA's, as Optuna has it before it normalizes
  double share = 0;        ///< of the sum over all settings; 0 where all are 0
  std::size_t trials = 0;  ///< that have the setting
};

/// Which trials are the best, and among which.
struct ImportanceOptions {
  double target = 0.1;  ///< the best tenth; five trials or more give steady numbers
  double region = 1;    ///< of these: all trials, or the best half of them, and so on
};

/// A candidate and what it came to, to be minimised.
struct ImportanceSample {
  Candidate candidate{};
  double value = 0;
};

namespace detail {

/// Over the cells of a setting's range: for each how likely a trial has it.
using CellMasses = std::vector<double>;

/// 50 cells at most: each has the values nearest to one of equally spaced points, of logarithms where the
/// setting is logarithmic. A name is a cell.
std::size_t importance_cells(Distribution const& of);

/// Whether there is nothing to choose.
bool is_single(Distribution const& of);

std::size_t importance_cell(Distribution const& of, std::size_t cells, double value);

/// The probability of a normal number between two bounds, exact in either tail.
double normal_mass(double from, double to);

/// A Parzen estimator of the trials' cells, with one trial's worth of ignorance: each cell with trials has a
/// normal kernel of Scott's width, or for names a mass on that name, by the number of its trials.
CellMasses parzen_masses(std::vector<std::size_t> const& cells_of_trials, std::size_t cells,
                         bool names);

/// Pearson's divergence of the best trials from all.
double pearson_divergence(CellMasses const& best, CellMasses const& all);

/// The value up to which a trial is in this quantile.
double quantile_value(std::vector<ImportanceSample> const& of, double quantile);

}  // namespace detail

/// How much each setting, and the recipe, matters for being among the best of these samples: how much the
/// values of the best differ from the values of all. It is the first-order term of functional ANOVA for the
/// event of being among the best, in closed form over Parzen estimators. The most important one is first.
///
/// Only samples with finite values count. A setting that only some recipes have is judged among the samples
/// that have it, weighted by how many they are. With fewer than two samples, or if all are among the best,
/// all are 0, and so are their shares: nothing is known then.
///
/// Errors  SettingsError unless 0 < target < region <= 1.
/// Cost    for each setting 50 kernels of 50 cells.
/// Source  Watanabe, Bansal and Hutter, "PED-ANOVA: efficiently quantifying hyperparameter importance in
///         arbitrary subspaces" (IJCAI 2023), equation 16; settings that depend on others as in "Conditional
///         PED-ANOVA" (2026), theorem 4.2. Numbers are those of Optuna's PedAnovaImportanceEvaluator.
std::vector<SettingImportance> setting_importance(SearchDomain const& domain,
                                                  std::vector<ImportanceSample> samples,
                                                  ImportanceOptions const& options = {});

/// The same, of the trials of a search that are complete and whose value of this objective is finite. Pruned
/// trials have trained less, and repeats would count a candidate twice: neither counts.
std::vector<SettingImportance> setting_importance(SearchDomain const& domain,
                                                  SearchHistory const& history,
                                                  std::size_t objective = 0,
                                                  ImportanceOptions const& options = {});

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/search/results/importance.ipp>
#endif
