// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <optional>
#include <string>

#include <frugal/core/run/counters.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal {

/// The learning rate of the next step, as a factor of each parameter group's own rate. Schedule
/// writes it, optimizers multiply by it; it never waits for a device.
struct LearningRate {
  double factor = 1.0;
  double scale = 1.0;  ///< multiplies the schedule's factor: Rollback lowers it
  /// The own rate of the first parameter group, which optimizers set at each begin: not saved.
  std::optional<double> base{};

  /// The rate of the first parameter group in the next step; nothing if its optimizer has none.
  std::optional<double> first() const {
    return base ? std::optional(*base * (factor * scale)) : std::nullopt;
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
        {.what = "the learning rate would be multiplied by " + std::to_string(value),
         .where = "epoch " + std::to_string(at.epoch) + ", before step " + std::to_string(at.step),
         .why = "the factor of a Schedule, or of a policy that sets one, must be "
                "finite and 0 or more",
         .fix = "Check the curves of the Schedule and their members."});
  }
};

}  // namespace frugal
