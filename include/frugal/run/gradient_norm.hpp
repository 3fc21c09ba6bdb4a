// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <limits>
#include <optional>
#include <utility>

namespace frugal {

/// The norm of the last window's gradients before clipping, where a policy takes it.
class GradientNorm {
 public:
  void set(double norm) { host_ = norm; }
  void set(at::Tensor norm) { device_ = std::move(norm); }
  bool known() const { return host_ || device_.defined(); }
  /// NaN where nobody took it. Waits for a device if the norm is on one.
  double value() const {
    if (device_.defined()) return device_.item<double>();
    return host_.value_or(std::numeric_limits<double>::quiet_NaN());
  }

 private:
  std::optional<double> host_;
  at::Tensor device_;
};

/// Whether the window's gradients are finite, for those who scale the loss. In a recipe where
/// nobody does there is no flag, and nothing is asked.
struct Overflow {
  at::Tensor found{};  ///< a float scalar where the gradients are: 1 if one is not finite
  bool skip = false;   ///< this window is not counted as a step
};

}  // namespace frugal
