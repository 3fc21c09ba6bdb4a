// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <frugal/base/number_text.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

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

  FRUGAL_INLINE void begin(c10::Device device) {
    check();
    auto const number = at::TensorOptions().device(device).dtype(at::kFloat);
    scale_ = at::full({}, settings_.initial, number);
    good_steps_ = at::zeros({}, number.dtype(at::kInt));
    overflow_ = at::zeros({}, number);
    if (in_numbers()) inverse_ = at::empty({}, number);
  }

  /// The scaled seed of a backward pass.
  at::Tensor scaled(at::Tensor const& seed) const { return seed * scaled_one(seed.scalar_type()); }
  /// The scaled seed for a seed of 1.
  at::Tensor scaled_one(at::ScalarType type) const {
    return type == at::kFloat ? scale_ : scale_.to(type);
  }

  /// Divides the gradients by the scale, and records whether any is not finite.
  FRUGAL_INLINE void unscale(std::vector<at::Tensor> const& gradients) {
    at::NoGradGuard const no_gradients;
    if (in_numbers()) {
      *overflow_.data_ptr<float>() = 0;
    } else {
      overflow_.zero_();
    }
    if (gradients.empty()) return;
    at::_amp_foreach_non_finite_check_and_unscale_(gradients, overflow_, inverse());
  }

  /// Replaces this process's flag by the result of `reduce`.
  template <class Reduce>
  void agree(Reduce&& reduce) {
    overflow_ = reduce(std::move(overflow_));
  }

  /// Computes the scale of the next window.
  FRUGAL_INLINE void update() {
    at::NoGradGuard const no_gradients;
    at::_amp_update_scale_(scale_, good_steps_, overflow_, settings_.growth, settings_.backoff,
                           settings_.growth_interval);
  }

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

  FRUGAL_INLINE at::Tensor inverse() const {
    if (!in_numbers()) return scale_.to(at::kDouble).reciprocal_().to(at::kFloat);
    *inverse_.data_ptr<float>() =
        static_cast<float>(1 / static_cast<double>(*scale_.data_ptr<float>()));
    return inverse_;
  }

  FRUGAL_INLINE void check() const {
    auto const refuse = [](std::string what, std::string why, std::string fix) {
      throw SettingsError({.what = std::move(what),
                           .where = "Precision<FP16>::scaling",
                           .why = std::move(why),
                           .fix = std::move(fix)});
    };
    if (!(settings_.initial > 0) || !std::isfinite(settings_.initial)) {
      refuse("the initial scale is " + detail::general(settings_.initial, 6),
             "the loss is multiplied by it", "Set a number above 0, such as 65536.");
    }
    if (!(settings_.growth > 1) || !std::isfinite(settings_.growth)) {
      refuse("the growth factor is " + detail::general(settings_.growth, 6),
             "the scale grows by it", "Set a number above 1, such as 2.");
    }
    if (!(settings_.backoff > 0 && settings_.backoff < 1)) {
      refuse("the backoff factor is " + detail::general(settings_.backoff, 6),
             "the scale shrinks by it after an overflow",
             "Set a number between 0 and 1, such as 0.5.");
    }
    if (settings_.growth_interval < 1 || settings_.most_skips < 1) {
      refuse("growth_interval is " + std::to_string(settings_.growth_interval) +
                 ", and most_skips is " + std::to_string(settings_.most_skips),
             "they count steps", "Set 1 or more, such as 2000 and 100.");
    }
  }

  LossScaling settings_;
  at::Tensor scale_;       // float scalar
  at::Tensor good_steps_;  // int scalar: steps since the scale last changed
  at::Tensor overflow_;    // float scalar
  at::Tensor inverse_;     // float scalar, in host memory
  bool by_operators_;
};

}  // namespace detail

}  // namespace frugal
