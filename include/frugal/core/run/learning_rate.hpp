// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <frugal/core/run/counters.hpp>

namespace frugal {

/// The learning rate of a parameter group, for loggers.
struct GroupRate {
  std::string name{};   ///< stable over runs, and no other group's
  double own = 0;       ///< before any factor that changes during a run
  double factor = 1.0;  ///< of the group's own schedule, in the last step
};

/// The learning rate of the next step, as a factor of each parameter group's own rate. Schedule
/// writes it, optimizers multiply by it; it never waits for a device.
class LearningRate {
 public:
  /// The schedule's factor, multiplied by the scale.
  double factor() const { return factor_ * scale_; }
  /// What multiplies the schedule's factor: Rollback lowers it.
  double scale() const { return scale_; }

  /// Sets the schedule's factor. SettingsError if it is negative or not finite, before a step uses it.
  void set_factor(double value, Counters const& at);
  /// Likewise, the scale.
  void set_scale(double value, Counters const& at);

  /// One for each rate; none if the optimizer reports none. Optimizers set them at each begin: not
  /// saved.
  void set_groups(std::vector<GroupRate> groups) { groups_ = std::move(groups); }
  void set_group_factor(std::size_t group, double factor) { groups_[group].factor = factor; }
  std::vector<GroupRate> const& groups() const { return groups_; }

  /// The rate of the first parameter group in the next step; nothing if its optimizer has none.
  std::optional<double> first() const {
    return groups_.empty() ? std::nullopt : std::optional(of(groups_.front()));
  }
  double of(GroupRate const& group) const { return group.own * (factor_ * scale_ * group.factor); }

  /// The groups' rates by their names, if there is more than one.
  std::vector<std::pair<std::string, double>> each() const;

  template <class Archive>
  void persist(Archive& archive) {
    archive("factor", factor_);
    archive("scale", scale_);
  }

 private:
  [[noreturn]] static void refuse(double value, Counters const& at, std::string why,
                                  std::string fix);

  double factor_ = 1.0;
  double scale_ = 1.0;
  std::vector<GroupRate> groups_{};
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/learning_rate.ipp>
#endif
