// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cstdint>
#include <vector>

#include <frugal/core/state/state_reader.hpp>

namespace frugal {

/// Settings of loss scaling in FP16; the defaults are PyTorch's.
struct LossScaling {
  double initial = 65536;               ///< scale of the first step
  double growth = 2;                    ///< factor after `growth_interval` consecutive good steps
  double backoff = 0.5;                 ///< factor after a step with an overflow
  std::int64_t growth_interval = 2000;  ///< steps
  std::uint64_t most_skips = 100;       ///< consecutive overflows after which the run fails
};

namespace detail {

/// The loss scale, on the gradients' device: no step waits to read it.
///
/// Gradients of FP16's backward pass underflow below 6e-8. So the loss is multiplied by the largest
/// power of two that causes no overflow, and the gradients are divided by it again. A window that
/// overflows anyway changes nothing but the scale.
///
/// Source  Micikevicius et al., "Mixed precision training" (2018), section 3.2; values as
///         torch.amp.GradScaler.
class LossScale {
 public:
  /// `by_operators`: use operators also in host memory, where plain numbers would do. A captured
  /// step needs this.
  explicit LossScale(LossScaling const& settings, bool by_operators = false)
      : settings_(settings), by_operators_(by_operators) {}

  void begin(c10::Device device);

  /// The scaled seed of a backward pass.
  at::Tensor scaled(at::Tensor const& seed) const { return seed * scaled_one(seed.scalar_type()); }
  /// The scaled seed for a seed of 1.
  at::Tensor scaled_one(at::ScalarType type) const {
    return type == at::kFloat ? scale_ : scale_.to(type);
  }

  /// Divides the gradients by the scale, and records whether any is not finite.
  void unscale(std::vector<at::Tensor> const& gradients);

  /// Replaces this process's flag by the result of `reduce`.
  template <class Reduce>
  void agree(Reduce&& reduce) {
    overflow_ = reduce(std::move(overflow_));
  }

  /// Computes the scale of the next window.
  void update();

  /// 1 if a gradient of this window is not finite.
  at::Tensor const& overflow() const { return overflow_; }
  /// Waits for the device.
  double value() const { return scale_.item<double>(); }
  std::uint64_t most_skips() const { return settings_.most_skips; }

  template <class Archive>
  void persist(Archive& archive) {
    double scale = Archive::loading ? 0 : value();
    std::int64_t good_steps = Archive::loading ? 0 : good_steps_.item<std::int64_t>();
    archive("scale", scale);
    archive("good_steps", good_steps);
    if (!Archive::loading) return;
    if (auto const device = destination(archive)) begin(*device);
    scale_.fill_(scale);
    good_steps_.fill_(good_steps);
  }

 private:
  /// Whether these are plain numbers in host memory, which need no operators.
  bool in_numbers() const { return !by_operators_ && scale_.is_cpu(); }

  at::Tensor inverse() const;

  void check() const;

  LossScaling settings_;
  at::Tensor scale_;       // float scalar
  at::Tensor good_steps_;  // int scalar: steps since the scale last changed
  at::Tensor overflow_;    // float scalar
  at::Tensor inverse_;     // float scalar, in host memory
  bool by_operators_;
};

}  // namespace detail

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/policy/precision/loss_scale.ipp>
#endif
