// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <frugal/base/number_text.hpp>
#include <frugal/core/run/counters.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

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
  FRUGAL_INLINE std::vector<std::pair<std::string, double>> each() const {
    std::vector<std::pair<std::string, double>> rates;
    if (groups.size() < 2) return rates;
    for (GroupRate const& group : groups) rates.emplace_back(group.name, of(group));
    return rates;
  }

  /// SettingsError for a factor that is negative or not finite, before a step uses it.
  FRUGAL_INLINE void set_factor(double value, Counters const& at) {
    if (!(value >= 0 && value <= std::numeric_limits<double>::max())) [[unlikely]]
      refuse(value, at);
    factor = value;
  }

  template <class Archive>
  void persist(Archive& archive) {
    archive("factor", factor);
    archive("scale", scale);
  }

 private:
  [[noreturn]] FRUGAL_INLINE static void refuse(double value, Counters const& at) {
    throw SettingsError(
        {.what = "the learning rate would be multiplied by " + detail::general(value, 6),
         .where = "epoch " + std::to_string(at.epoch) + ", before step " + std::to_string(at.step),
         .why = "the factor of a Schedule, or of a policy that sets one, must be "
                "finite and 0 or more",
         .fix = "Check the curves of the Schedule and their members."});
  }
};

}  // namespace frugal
