// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/nn/module.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/loss_accumulator.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/core/run/settings.hpp>
#include <frugal/core/run/window_phases.hpp>
#include <frugal/error.hpp>

namespace frugal::detail {

/// The buffers of a module that can become NaN or infinite, such as BatchNorm's running statistics,
/// as they were before a window. A forward pass writes them before it is known that its window is
/// skipped, and a running mean that is NaN stays NaN.
///
/// They are put back together if one is not finite. Finite ones of a skipped window stay, as in
/// PyTorch: those of a window whose gradients alone overflowed.
class KeptBuffers {
 public:
  /// Call it when the fit begins. A number that is infinite or NaN from the start, such as that of a mask
  /// or of a range that has seen nothing, is bad only if it becomes another one that is not finite.
  void begin(torch::nn::Module& module);
  bool empty() const { return buffers_.empty(); }

  /// Copies them, before a window. One operator for each type and device.
  void take();

  /// Puts them back if one is not finite and `skipped`, a scalar on any device, is not 0. Of
  /// operators alone, so that it can be captured; no host sync, unless the flag is on a
  /// device and a buffer is not.
  void put_back(at::Tensor const& skipped);
  /// Whether one has become bad since take(). Waits for the device.
  bool is_bad() const;
  /// Puts them back if one of any process was bad.
  void put_back(bool bad);

 private:
  struct Group {
    std::vector<at::Tensor> buffers;
    at::Tensor kept;     ///< [number of all elements]
    bool finite = true;  ///< all of them were when the fit began

    at::Tensor good(at::Tensor const& now, at::Tensor const& before) const;
  };

  void group();

  static std::vector<at::Tensor> flat(std::vector<at::Tensor> const& tensors);
  static std::vector<at::Tensor> parts(at::Tensor const& all, std::vector<at::Tensor> const& like);

  std::vector<at::Tensor> buffers_;
  std::vector<bool> finite_;   ///< when the fit began
  std::vector<Group> groups_;  ///< by type and device; once take() was called
};

/// Flags that a device computes and the host reads `lag` windows later, without waiting.
///
/// A flag in host memory is read at once, with a lag of 0. A flag on a device is copied to
/// page-locked memory, ordered after the work that computes it, and read `lag` windows later: by
/// then it has arrived, unless the host is further ahead than that. The lag is a number of windows
/// rather than a time, so that two runs count alike.
class FlagQueue {
 public:
  explicit FlagQueue(std::size_t lag = 0) : lag_(lag) {}

  /// Enqueues this window's flag, and returns the one from `lag` windows ago: false if there is
  /// none.
  bool next(at::Tensor const& flag);

  /// Waits for flags still in flight.
  template <class Archive>
  void persist(Archive& archive) {
    std::vector<double> flags;
    if (!Archive::loading) {
      for (Waiting const& each : waiting_) flags.push_back(value(each) ? 1 : 0);
    }
    archive("waiting", flags);
    if (!Archive::loading) return;
    waiting_.clear();
    for (double const flag : flags) waiting_.push_back({.known = flag != 0});
  }

 private:
  struct Waiting {
    std::optional<bool> known{};
    std::size_t slot = 0;
  };
  /// Destination of a flag's copy. There is one more than can be in flight, allocated once and used
  /// in turn.
  struct Slot {
    at::Tensor host;
    c10::Event copied;
  };

  std::size_t begin_reading(at::Tensor const& flag);

  bool value(Waiting const& waiting) const;

  std::size_t lag_;
  std::deque<Waiting> waiting_;
  std::vector<Slot> slots_;
  std::size_t turn_ = 0;
};

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

#ifndef FRUGAL_COMPILED
#include <frugal/policy/skipped_windows.ipp>
#endif
