// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/loop/window.hpp>

#include <ATen/core/grad_mode.h>

#include <frugal/base/number_text.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal {

FRUGAL_INLINE void WindowCounts::scale(std::vector<at::Tensor> const& gradients, double unit,
                                       double all) {
  if (all == unit || all == 0 || gradients.empty()) return;
  at::NoGradGuard const no_gradients;
  at::_foreach_mul_(gradients, unit / all);
}

FRUGAL_INLINE void WindowCounts::fill(double value, at::Tensor const& like) {
  cached_ = at::full({}, value, like.options().requires_grad(false));
  cached_value_ = value;
}

FRUGAL_INLINE void WindowCounts::refuse(double weight) {
  throw SettingsError(
      {.what = "a loss has the weight " + detail::general(weight, 6),
       .where = "Loss::weight",
       .why = "a weight is a number of samples or tokens",
       .fix = "Return the number of samples or tokens that the loss averages over, 0 or more."});
}

}  // namespace frugal
