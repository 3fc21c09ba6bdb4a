// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <utility>

#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/gradient_norm.hpp>
#include <frugal/error.hpp>

namespace frugal {

/// The window in progress as policies see it: its gradients, and what is known of them.
class WindowState {
 public:
  /// The gradients of what the optimizer updates.
  GradientList& gradients() { return gradients_; }
  GradientList const& gradients() const { return gradients_; }

  /// Where the window is, for errors; set when its gradients are gathered.
  LossError::Window const& place() const { return place_; }
  void set_place(LossError::Window const& place) { place_ = place; }

  /// The norm before clipping, if a policy computes it.
  GradientNorm const& norm() const { return norm_; }
  void set_norm(GradientNorm norm) { norm_ = std::move(norm); }
  void set_norm(double norm) { norm_.set(norm); }
  void set_norm(at::Tensor norm) { norm_.set(std::move(norm)); }

  /// A scalar on the gradients' device: 1 if any is not finite. Undefined without a policy that skips such
  /// windows.
  at::Tensor const& overflow() const { return overflow_; }
  void set_overflow(at::Tensor found) { overflow_ = std::move(found); }
  /// The window does not count as a step.
  void skip_step() { skips_ = true; }
  bool skips_step() const { return skips_; }
  /// The same, for the window that ends here.
  bool take_skip() { return std::exchange(skips_, false); }

  /// Of a window that processes divide: what the gradients of the micro-batch in its backward pass
  /// are still to be multiplied by.
  double const& gradient_unit() const { return unit_; }
  void set_gradient_unit(double unit) { unit_ = unit; }

  /// What the gradients are multiplied by until on_gradients; 1 without a policy that scales losses. May wait
  /// for a device.
  double loss_scale() const { return loss_scale_ ? loss_scale_() : 1.0; }
  /// Set in on_fit_begin by the policy that scales losses.
  void scale_losses_by(std::function<double()> scale) { loss_scale_ = std::move(scale); }

  /// The window's loss; only for optimizers that reevaluate.
  at::Tensor const& loss() const { return loss_; }
  void set_loss(at::Tensor loss) { loss_ = std::move(loss); }

  /// The run has moved to another device.
  void forget_overflow() {
    overflow_.reset();
    skips_ = false;
  }
  /// What a failed window, or the code after it, has left.
  void discard() {
    gradients_.clear();
    forget_overflow();
  }

 private:
  GradientList gradients_{};
  LossError::Window place_{};
  GradientNorm norm_{};
  at::Tensor overflow_{};
  bool skips_ = false;
  double unit_ = 1;
  std::function<double()> loss_scale_{};
  at::Tensor loss_{};
};

}  // namespace frugal
