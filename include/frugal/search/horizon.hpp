// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <frugal/core/run/run_limits.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/search/job.hpp>
#include <frugal/search/schedule/schedule.hpp>

namespace frugal::detail {

/// A whole run in the unit of the rungs. SettingsError where the recipes do not agree on it, or it is not known.
///
/// `all`: the limits of each recipe's run.
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

/// The budget in the unit of the rungs that is left for trials, without the finalists' repeats.
FRUGAL_INLINE std::optional<std::uint64_t> planned_budget(SearchSettings const& settings,
                                                          RungUnit unit, std::uint64_t horizon) {
  SearchBudget const& budget = settings.budget;
  auto const refuse = [&](std::string what, std::string why, char const* fix) {
    throw SettingsError({.what = std::move(what),
                         .where = "SearchSettings::budget",
                         .why = std::move(why),
                         .fix = fix});
  };
  bool const other =
      (budget.steps && unit != RungUnit::steps) || (budget.samples && unit != RungUnit::samples);
  if (other) {
    refuse(std::string("the budget is in ") + (budget.steps ? "steps" : "samples") +
               ", and the rungs are in " + name_of(unit),
           "one does not follow from the other",
           "Give the budget in the unit of the rungs, or in hours or dollars.");
  }
  std::optional<std::uint64_t> const given = unit == RungUnit::steps     ? budget.steps
                                             : unit == RungUnit::samples ? budget.samples
                                                                         : std::nullopt;
  if (!given) return std::nullopt;
  std::uint64_t const reserved = settings.finalists.runs() * horizon;
  if (*given <= reserved) {
    refuse("the budget is " + std::to_string(*given) + " " + name_of(unit),
           "the finalists' repeats alone take " + std::to_string(reserved) + ": " +
               std::to_string(settings.finalists.runs()) + " runs of " + std::to_string(horizon),
           "Give a larger budget, or fewer finalists: SearchSettings{.finalists = {.count = 0}}.");
  }
  return *given - reserved;
}

/// The budget in seconds of all trials, if it is measured.
FRUGAL_INLINE std::optional<double> measured_budget(SearchSettings const& settings) {
  std::optional<double> seconds;
  if (settings.budget.hours) seconds = *settings.budget.hours * 3600;
  if (settings.budget.dollars) {
    double const paid = *settings.budget.dollars / *settings.dollars_per_hour * 3600;
    seconds = std::fmin(seconds.value_or(paid), paid);
  }
  return seconds;
}

}  // namespace frugal::detail
