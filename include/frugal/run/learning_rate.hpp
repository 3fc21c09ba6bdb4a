// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace frugal {

/// The learning rate of the coming step, as a factor of what each parameter group asks for.
/// Schedule writes it, optimizers multiply with it; it never waits for a device.
struct LearningRate {
  double factor = 1.0;
  double scale = 1.0;  ///< on top of it, whatever the schedule says: Rollback lowers it

  template <class Archive>
  void persist(Archive& archive) {
    archive("factor", factor);
    archive("scale", scale);
  }
};

}  // namespace frugal
