// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <frugal/core/run/run_limits.hpp>
#include <frugal/policy/optimize/group_settings.hpp>
#include <frugal/policy/optimize/groups.hpp>

namespace frugal::detail {

/// The schedules of a run's parameter groups, if they have any.
class RateSchedules {
 public:
  RateSchedules() = default;
  /// SettingsError if a curve runs "to the end" of a run without a known end.
  RateSchedules(std::vector<ParameterGroup> const& groups, GroupSettings const& settings,
                RunLimits const& horizon);

  explicit operator bool() const { return some_; }
  std::vector<std::string> const& outlooks() const { return outlooks_; }

  /// The factor of each rate at an optimizer step, counted from 0. SettingsError for one that is
  /// negative or not finite.
  std::vector<double> factors(std::uint64_t step) const;

  /// For recipes that capture their steps.
  void require_none() const;

 private:
  [[noreturn]] void refuse(std::size_t group, double factor, std::uint64_t step) const;

  bool some_ = false;
  std::vector<std::string> names_;                 // of the groups
  std::vector<GroupSchedule::Factor> of_group_;    // none: the group has no schedule
  std::vector<std::vector<std::size_t>> of_rate_;  // the groups whose schedules it has
  std::vector<std::string> outlooks_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/policy/optimize/rate_schedules.ipp>
#endif
