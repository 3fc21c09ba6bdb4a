// SPDX-License-Identifier: Apache-2.0
#pragma once

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
struct LearningRate {
  double factor = 1.0;
  double scale = 1.0;  ///< multiplies the schedule's factor: Rollback lowers it
  /// One for each rate; none if the optimizer reports none. Optimizers set them at each begin: not
  /// saved.
  std::vector<GroupRate> groups{};

  /// The rate of the first parameter group in the next step; nothing if its optimizer has none.
  std::optional<double> first() const {
    return groups.empty() ? std::nullopt : std::optional(of(groups.front()));
  }
  double of(GroupRate const& group) const { return group.own * (factor * scale * group.factor); }

  /// The groups' rates by their names, if there is more than one.
  std::vector<std::pair<std::string, double>> each() const;

  /// SettingsError for a factor that is negative or not finite, before a step uses it.
  void set_factor(double value, Counters const& at);

  template <class Archive>
  void persist(Archive& archive) {
    archive("factor", factor);
    archive("scale", scale);
  }

 private:
  [[noreturn]] static void refuse(double value, Counters const& at);
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/learning_rate.ipp>
#endif
