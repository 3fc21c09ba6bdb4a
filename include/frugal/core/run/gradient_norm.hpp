// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <utility>

namespace frugal {

/// The norm of the last window's gradients before clipping, if a policy computes it.
class GradientNorm {
 public:
  void set(double norm) { host_ = norm; }
  void set(at::Tensor norm) { device_ = std::move(norm); }
  bool known() const { return host_ || device_.defined(); }
  /// NaN if no policy computes it. Waits for the device if the norm is on one.
  double value() const;

 private:
  std::optional<double> host_;
  at::Tensor device_;
};

/// The overflow flag of a window: whether a gradient is not finite. A recipe without a policy that
/// skips such windows has no flag and checks nothing.
struct Overflow {
  at::Tensor found{};  ///< a float scalar on the gradients' device: 1 if any is not finite
  bool skip = false;   ///< this window does not count as a step
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/gradient_norm.ipp>
#endif
