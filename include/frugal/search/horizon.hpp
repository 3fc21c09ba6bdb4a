// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <frugal/core/run/run_limits.hpp>
#include <frugal/search/forecast.hpp>
#include <frugal/search/job.hpp>
#include <frugal/search/schedule/schedule.hpp>

namespace frugal::detail {

/// A whole run in the unit of the rungs. SettingsError where the recipes do not agree on it, or it is not known.
///
/// `all`: the limits of each recipe's run.
std::uint64_t search_horizon(SearchSettings const& settings, RungUnit unit,
                             std::vector<RunLimits> const& all);

/// The budget in the unit of the rungs, for which a search is planned, if it is given.
std::optional<std::uint64_t> planned_budget(SearchBudget const& budget, RungUnit unit);

/// The part of a planned budget that the finalists' repeats leave for trials.
std::uint64_t without_repeats(std::uint64_t budget, std::uint64_t repeats, RungUnit unit);

/// SettingsError for a planned budget with which no trial comes to its end, even if each is better than all before.
void require_complete(SearchForecast const& most, std::uint64_t budget, RungUnit unit);

/// SettingsError for a budget in time or money that does not pay for a first rung in time or money.
void require_first_rung(SearchSettings const& settings, RungUnit unit, std::uint64_t first);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/search/horizon.ipp>
#endif
