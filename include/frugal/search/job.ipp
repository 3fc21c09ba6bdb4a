// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/job.hpp>

#include <cmath>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <frugal/base/number_text.hpp>
#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/core/libtorch/modes.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/search/trials/candidate.hpp>

namespace frugal::detail {

FRUGAL_INLINE std::optional<bool> larger_is_better(std::string_view name) {
  for (std::string_view const each :
       {"loss", "train_loss", "seconds", "dollars", "bytes", "perplexity", "mae", "mse"}) {
    if (name == each) return false;
  }
  for (std::string_view const each : {"accuracy", "roc_auc", "roc_auc_ovr", "r2"}) {
    if (name == each) return true;
  }
  if (name.starts_with("top") && name.size() > 3 &&
      name.find_first_not_of("0123456789", 3) == name.npos) {
    return true;
  }
  for (std::string_view const score : {"precision", "recall", "f1"}) {
    if (!name.starts_with(score)) continue;
    std::string_view const of = name.substr(score.size());
    if (of.empty() || of == "_micro" || of == "_macro" || of == "_weighted") return true;
  }
  return std::nullopt;
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE std::optional<std::size_t> SearchSettings::winning_objective() const {
  for (std::size_t i = 0; i < objectives.size(); ++i) {
    if (objectives[i].name == winner_by) return i;
  }
  if (objectives.size() == 1) return 0;
  return std::nullopt;
}

FRUGAL_INLINE void SearchSettings::require() const {
  auto const refuse = [](std::string what, char const* where, char const* why, char const* fix) {
    throw SettingsError({.what = std::move(what), .where = where, .why = why, .fix = fix});
  };
  if (settings.run_dir.empty()) {
    refuse("the search has no folder", "SearchSettings::settings",
           "its trials are run directories, which a promotion resumes",
           "Set SearchSettings{.settings = {.run_dir = \"searches/first\"}}.");
  }
  if (objectives.empty()) {
    refuse("the search has no objective", "SearchSettings::objectives",
           "trials are compared by one", "Leave it out to minimise the validation loss.");
  }
  std::set<std::string> names;
  for (SearchObjective const& each : objectives) {
    if (names.insert(each.name).second) continue;
    refuse("the objective '" + each.name + "' is given twice", "SearchSettings::objectives",
           "objectives are found by their names", "Give each once.");
  }
  for (SearchObjective const& each : objectives) {
    auto const larger = detail::larger_is_better(each.name);
    if (!larger || *larger == each.maximise || measures.contains(each.name)) continue;
    refuse("the objective '" + each.name + "' is " + (each.maximise ? "maximised" : "minimised"),
           "SearchSettings::objectives",
           *larger ? "it is better if it is larger" : "it is better if it is smaller",
           *larger ? "Set .maximise = true." : "Leave .maximise out.");
  }
  if (!winner_by.empty() && !names.contains(winner_by)) {
    refuse("the winner is chosen by '" + winner_by + "'", "SearchSettings::winner_by",
           "the search has no objective of that name", "Name one of SearchSettings::objectives.");
  }
  auto const is_amount = [](std::optional<double> const& value) {
    return !value || (std::isfinite(*value) && *value > 0);
  };
  if (!is_amount(budget.hours) || !is_amount(budget.dollars) || budget.steps == 0U ||
      budget.samples == 0U) {
    refuse("the budget is not above 0", "SearchSettings::budget", "nothing would be trained",
           "Give more than 0, or leave it out for no limit.");
  }
  if (dollars_per_hour && !(*dollars_per_hour >= 0 && std::isfinite(*dollars_per_hour))) {
    refuse("the price is " + detail::general(*dollars_per_hour, 6),
           "SearchSettings::dollars_per_hour", "no machine costs that",
           "Give US dollars per hour of the whole machine, 0 or more.");
  }
  if (budget.dollars && dollars_per_hour == 0.0) {
    refuse("the budget is in dollars, and the price is 0", "SearchSettings::budget",
           "it would never be spent", "Set SearchSettings::dollars_per_hour.");
  }
  if (most_failures == 0) {
    refuse("no trial may fail", "SearchSettings::most_failures",
           "a trial is left after so many errors", "Set 1 or more.");
  }
  if (most_kills == 0) {
    refuse("no process may be killed", "SearchSettings::most_kills",
           "a trial is left after so many kills without a checkpoint between", "Set 1 or more.");
  }
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE SearchIdentity search_identity(SearchSettings const& settings,
                                             SearchDomain const& domain,
                                             std::string const& schedule,
                                             std::string const& sampler,
                                             std::vector<RunLimits> const& limits) {
  SearchIdentity all;
  std::string text;
  auto const separate = [&text] { text += text.empty() ? "" : "; "; };
  auto const put = [&](char const* name) {
    all.emplace_back(name, text);
    text.clear();
  };
  for (std::string const& each : domain.recipes) separate(), text += each;
  put("recipes");
  for (SearchedSetting const& each : domain.settings) {
    separate();
    text += each.name + " " + distribution_text(each.values);
    for (std::size_t const recipe : each.recipes) text += " @" + std::to_string(recipe);
  }
  put("settings");
  for (SearchObjective const& each : settings.objectives) {
    separate();
    text += (each.maximise ? "most " : "least ") + each.name;
  }
  put("objectives");
  text = schedule;
  put("schedule");
  text = sampler;
  put("sampler");
  auto const number = [](std::optional<std::uint64_t> const& of) {
    return of ? std::to_string(*of) : std::string("?");
  };
  for (RunLimits const& each : limits) {
    separate();
    text += number(each.total_steps) + " steps, " + number(each.samples_per_epoch) +
            " samples an epoch";
  }
  put("runs");
  // Hours and dollars stop a search, and these decide what it trains.
  if (settings.budget.steps) text = std::to_string(*settings.budget.steps) + " steps";
  if (settings.budget.samples) text = std::to_string(*settings.budget.samples) + " samples";
  put("budget");
  text = std::to_string(settings.settings.seed);
  put("seed");
  Finalists const finalists = settings.repeated();
  text = std::to_string(finalists.count) + " over " + std::to_string(finalists.seeds) + " seeds";
  if (settings.objectives.size() > 1 && !settings.winner_by.empty()) {
    text += " by " + settings.winner_by;
  }
  put("finalists");
  return all;
}

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

FRUGAL_INLINE std::uint64_t search_horizon(SearchSettings const& settings, RungUnit unit,
                                           std::vector<RunLimits> const& all) {
  auto const refuse = [&](std::string what, char const* why, char const* fix) {
    throw SettingsError({.what = std::move(what),
                         .where = std::string("a search with rungs in ") + name_of(unit),
                         .why = why,
                         .fix = fix});
  };
  if (!is_deterministic(unit)) {
    if (settings.horizon.value_or(0) == 0) {
      refuse("the length of a whole run is not known", "rungs are fractions of it",
             "Set SearchSettings::horizon, or use rungs in steps or samples.");
    }
    if (unit == RungUnit::cents && settings.dollars_per_hour.value_or(0) == 0) {
      refuse("there is no price", "rungs are in hundredths of a dollar",
             "Set SearchSettings::dollars_per_hour.");
    }
    return *settings.horizon;
  }
  std::optional<std::uint64_t> horizon;
  for (RunLimits const& each : all) {
    std::optional<std::uint64_t> own;
    if (unit == RungUnit::steps) own = each.total_steps;
    bool const by_epochs = each.steps == RunLimits::unlimited && each.epochs < RunLimits::unlimited;
    if (unit == RungUnit::samples && by_epochs && each.samples_per_epoch) {
      own = *each.samples_per_epoch * each.epochs;
    }
    if (!own || *own == 0) {
      refuse("the length of a whole run is not known", "rungs are counted back from it",
             unit == RungUnit::steps
                 ? "Set Settings::steps, or Settings::epochs with a source that knows its size."
                 : "Set Settings::epochs and not steps, with a source that knows its size; or use "
                   "rungs in steps.");
    }
    if (horizon && *horizon != *own) {
      refuse("one recipe trains " + std::to_string(*horizon) + " " + name_of(unit) +
                 " and another one " + std::to_string(*own),
             "a rung compares trials that have trained as much",
             "Use rungs in samples, or set Settings::steps.");
    }
    horizon = own;
  }
  return *horizon;
}

FRUGAL_INLINE std::optional<std::uint64_t> planned_budget(SearchBudget const& budget,
                                                          RungUnit unit) {
  bool const other =
      (budget.steps && unit != RungUnit::steps) || (budget.samples && unit != RungUnit::samples);
  if (other) {
    throw SettingsError(
        {.what = std::string("the budget is in ") + (budget.steps ? "steps" : "samples") +
                 ", and the rungs are in " + name_of(unit),
         .where = "SearchSettings::budget",
         .why = "one does not follow from the other",
         .fix = "Give the budget in the unit of the rungs, or in hours or dollars."});
  }
  return unit == RungUnit::steps ? budget.steps : budget.samples;
}

FRUGAL_INLINE std::uint64_t without_repeats(std::uint64_t budget, std::uint64_t repeats,
                                            RungUnit unit) {
  if (budget > repeats) return budget - repeats;
  throw SettingsError(
      {.what = "the budget is " + std::to_string(budget) + " " + name_of(unit),
       .where = "SearchSettings::budget",
       .why = "the finalists' repeats alone take " + std::to_string(repeats),
       .fix =
           "Give a larger budget, or fewer finalists: SearchSettings{.finalists = {.count = 0}}."});
}

FRUGAL_INLINE void require_complete(SearchForecast const& most, std::uint64_t budget,
                                    RungUnit unit) {
  if (most.complete != 0) return;
  throw SettingsError({.what = "the budget is " + std::to_string(budget) + " " + name_of(unit),
                       .where = "SearchSettings::budget",
                       .why = "no trial can come to its end before it is spent",
                       .fix = "Give a larger budget, fewer finalists, or a longer first rung."});
}

FRUGAL_INLINE void require_first_rung(SearchSettings const& settings, RungUnit unit,
                                      std::uint64_t first) {
  if (is_deterministic(unit)) return;
  double const price = settings.dollars_per_hour.value_or(0) / 3600;
  double const needed = static_cast<double>(first);
  bool const in_seconds = unit == RungUnit::seconds;
  auto const require = [&](double paid) {
    if (paid >= needed) return;
    throw SettingsError({.what = "the budget is " + general(paid, 4) + " " + name_of(unit),
                         .where = "SearchSettings::budget",
                         .why = "the first rung of one trial takes " + std::to_string(first),
                         .fix = "Give a larger budget, or a shorter first rung."});
  };
  if (settings.budget.hours) {
    double const seconds = *settings.budget.hours * 3600;
    require(in_seconds ? seconds : 100 * seconds * price);
  }
  if (settings.budget.dollars && !in_seconds) require(100 * *settings.budget.dollars);
  if (settings.budget.dollars && in_seconds && price > 0) require(*settings.budget.dollars / price);
}

}  // namespace frugal::detail
