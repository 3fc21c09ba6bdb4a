// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace frugal {

/// The learning rate of the next step, as a factor of each parameter group's own rate. Schedule
/// writes it, optimizers multiply by it; it never waits for a device.
struct LearningRate {
  double factor = 1.0;
  double scale = 1.0;  ///< multiplies the schedule's factor: Rollback lowers it

  template <class Archive>
  void persist(Archive& archive) {
    archive("factor", factor);
    archive("scale", scale);
  }
};

}  // namespace frugal
