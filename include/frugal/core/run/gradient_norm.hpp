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

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/gradient_norm.ipp>
#endif
