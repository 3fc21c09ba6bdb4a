// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/optimize/rate_schedules.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <limits>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE RateSchedules::RateSchedules(std::vector<ParameterGroup> const& groups,
                                           GroupSettings const& settings, RunLimits const& horizon)
    : of_rate_(settings.schedules) {
  for (ParameterGroup const& group : groups) {
    names_.push_back(group.name);
    of_group_.emplace_back();
    if (!group.schedule) continue;
    some_ = true;
    GroupSchedule::Laid laid = group.schedule.over(horizon);
    of_group_.back() = std::move(laid.factor);
    if (!laid.outlook.empty()) {
      outlooks_.push_back("the schedule of parameter group '" + group.name + "': " + laid.outlook);
    }
  }
}

FRUGAL_INLINE std::vector<double> RateSchedules::factors(std::uint64_t step) const {
  std::vector<double> of_group(of_group_.size(), 1.0);
  for (std::size_t g = 0; g < of_group.size(); ++g) {
    if (!of_group_[g]) continue;
    of_group[g] = of_group_[g](step);
    if (!(of_group[g] >= 0 && of_group[g] <= std::numeric_limits<double>::max())) {
      refuse(g, of_group[g], step);
    }
  }
  std::vector<double> factors;
  for (auto const& groups : of_rate_) {
    double factor = 1.0;
    for (std::size_t const g : groups) factor *= of_group[g];
    factors.push_back(factor);
  }
  return factors;
}

FRUGAL_INLINE void RateSchedules::require_none() const {
  if (!some_) return;
  throw SettingsError({.what = "a parameter group has a schedule of its own",
                       .where = "Optimize::groups",
                       .why = "CudaGraph replays a step with one factor for all rates",
                       .fix = "Use the recipe's Schedule, or leave out CudaGraph."});
}

FRUGAL_INLINE void RateSchedules::refuse(std::size_t group, double factor,
                                         std::uint64_t step) const {
  throw SettingsError({.what = "the schedule of parameter group '" + names_[group] +
                               "' gives the factor " + detail::general(factor, 6),
                       .where = "before step " + std::to_string(step),
                       .why = "a factor of a learning rate must be finite and 0 or more",
                       .fix = "Check the group's schedule."});
}

}  // namespace frugal::detail
