// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/precision/fp16.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <cmath>

namespace frugal::detail {

FRUGAL_INLINE void LossScale::begin(c10::Device device) {
  check();
  auto const number = at::TensorOptions().device(device).dtype(at::kFloat);
  scale_ = at::full({}, settings_.initial, number);
  good_steps_ = at::zeros({}, number.dtype(at::kInt));
  overflow_ = at::zeros({}, number);
  if (in_numbers()) inverse_ = at::empty({}, number);
}

FRUGAL_INLINE void LossScale::unscale(std::vector<at::Tensor> const& gradients) {
  at::NoGradGuard const no_gradients;
  if (in_numbers()) {
    *overflow_.data_ptr<float>() = 0;
  } else {
    overflow_.zero_();
  }
  if (gradients.empty()) return;
  at::_amp_foreach_non_finite_check_and_unscale_(gradients, overflow_, inverse());
}

FRUGAL_INLINE void LossScale::update() {
  at::NoGradGuard const no_gradients;
  at::_amp_update_scale_(scale_, good_steps_, overflow_, settings_.growth, settings_.backoff,
                         settings_.growth_interval);
}

FRUGAL_INLINE at::Tensor LossScale::inverse() const {
  if (!in_numbers()) return scale_.to(at::kDouble).reciprocal_().to(at::kFloat);
  *inverse_.data_ptr<float>() =
      static_cast<float>(1 / static_cast<double>(*scale_.data_ptr<float>()));
  return inverse_;
}

FRUGAL_INLINE void LossScale::check() const {
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
    refuse("the growth factor is " + detail::general(settings_.growth, 6), "the scale grows by it",
           "Set a number above 1, such as 2.");
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

}  // namespace frugal::detail
