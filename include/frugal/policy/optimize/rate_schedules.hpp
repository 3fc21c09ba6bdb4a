// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <frugal/base/number_text.hpp>
#include <frugal/core/run/run_limits.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/policy/optimize/group_schedule.hpp>
#include <frugal/policy/optimize/group_settings.hpp>
#include <frugal/policy/optimize/groups.hpp>

namespace frugal::detail {

/// The schedules of a run's parameter groups, if they have any.
class RateSchedules {
 public:
  RateSchedules() = default;
  /// SettingsError if a curve runs "to the end" of a run without a known end.
  FRUGAL_INLINE RateSchedules(std::vector<ParameterGroup> const& groups,
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
        outlooks_.push_back("the schedule of parameter group '" + group.name +
                            "': " + laid.outlook);
      }
    }
  }

  explicit operator bool() const { return some_; }
  std::vector<std::string> const& outlooks() const { return outlooks_; }

  /// The factor of each rate at an optimizer step, counted from 0. SettingsError for one that is
  /// negative or not finite.
  FRUGAL_INLINE std::vector<double> factors(std::uint64_t step) const {
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

  /// For recipes that capture their steps.
  FRUGAL_INLINE void require_none() const {
    if (!some_) return;
    throw SettingsError({.what = "a parameter group has a schedule of its own",
                         .where = "Optimize::groups",
                         .why = "CudaGraph replays a step with one factor for all rates",
                         .fix = "Use the recipe's Schedule, or leave out CudaGraph."});
  }

 private:
  [[noreturn]] FRUGAL_INLINE void refuse(std::size_t group, double factor,
                                         std::uint64_t step) const {
    throw SettingsError({.what = "the schedule of parameter group '" + names_[group] +
                                 "' gives the factor " + detail::general(factor, 6),
                         .where = "before step " + std::to_string(step),
                         .why = "a factor of a learning rate must be finite and 0 or more",
                         .fix = "Check the group's schedule."});
  }

  bool some_ = false;
  std::vector<std::string> names_;                 // of the groups
  std::vector<GroupSchedule::Factor> of_group_;    // none: the group has no schedule
  std::vector<std::vector<std::size_t>> of_rate_;  // the groups whose schedules it has
  std::vector<std::string> outlooks_;
};

}  // namespace frugal::detail
