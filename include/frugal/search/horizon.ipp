// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/horizon.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <string>
#include <utility>

namespace frugal::detail {

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
