// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/core/run/settings.hpp>
#include <frugal/core/run/window_phases.hpp>
#include <frugal/core/state/kept_buffers.hpp>
#include <frugal/error.hpp>
#include <frugal/policy/precision/flag_queue.hpp>

namespace frugal::detail {

/// The host's part of a policy that skips windows whose loss or gradients are not finite
/// (Precision<FP16>, SkipNonFinite): the flags on their way from the device, the count of skipped
/// windows in a row, and the module's buffers as they were before a window.
class SkippedWindows {
 public:
  void begin(FitBegin& phase) {
    captures_steps_ = phase.facts().captures_steps;
    flags_ = FlagQueue(phase.settings().device.is_cpu() ? 0 : lag_on_device);
    phase.leave_bad_losses();
    buffers_.begin(base_module(phase.module()));
  }

  /// Call it in on_window.
  void open() { buffers_.take(); }

  /// Call it in on_loss: if the loss is not finite, backward starts from NaN, so that the window is
  /// one with bad gradients, whatever the objective does in its backward pass. On a device one
  /// operator on a scalar.
  void spoil(LossReady& phase) const {
    if (*phase.loss.weight == 0) return;  // its value is a mean over nothing
    at::Tensor const& loss = phase.loss.value;
    if (!captures_steps_ && loss.is_cpu()) {
      if (!std::isfinite(host_scalar(loss))) [[unlikely]]
        phase.seed = at::full_like(phase.seed, std::numeric_limits<double>::quiet_NaN());
    } else {
      at::NoGradGuard const no_gradients;
      phase.seed = at::add(phase.seed, loss, 0);  // 0 times NaN or infinity is NaN
    }
  }

  /// Call it in on_gradients with this window's flag. Where the host does not know it yet, the
  /// device decides about the buffers.
  void close(at::Tensor const& flag) {
    if (!host_knows(flag)) buffers_.put_back(flag);
  }

  /// Looks at the flag of this window, or on a device at that of an earlier one, and skips this
  /// window if it is set. Whether it was.
  bool look(Gradients& phase, at::Tensor const& flag) {
    if (!flags_.next(flag)) {
      in_a_row_ = 0;
      return false;
    }
    phase.skip_step();
    // If processes have different layers, a bad buffer of one puts back those of all.
    if (host_knows(flag)) {
      buffers_.put_back(phase.reduce(Quantity::overflow, buffers_.is_bad() ? 1.0 : 0.0) != 0);
    }
    ++in_a_row_;
    return true;
  }
  std::uint64_t in_a_row() const { return in_a_row_; }

  [[noreturn]] void give_up(Phase const& phase, std::string why, std::string fix) const {
    throw GradientError({.what = std::to_string(in_a_row_) +
                                 " windows in a row had a loss or gradients that are NaN or "
                                 "infinite",
                         .where = "step " + std::to_string(phase.counters().step) + ", epoch " +
                                  std::to_string(phase.counters().epoch),
                         .why = std::move(why),
                         .fix = std::move(fix)});
  }

  template <class Archive>
  void persist(Archive& archive) {
    flags_.persist(archive);
    archive("skips_in_a_row", in_a_row_);
  }

 private:
  static constexpr std::size_t lag_on_device = 2;

  /// A captured step decides on the device wherever it runs.
  bool host_knows(at::Tensor const& flag) const { return !captures_steps_ && flag.is_cpu(); }

  bool captures_steps_ = false;
  FlagQueue flags_;
  KeptBuffers buffers_;
  std::uint64_t in_a_row_ = 0;
};

}  // namespace frugal::detail
