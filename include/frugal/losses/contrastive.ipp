// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/losses/contrastive.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <ATen/autocast_mode.h>

#include <limits>
#include <string>

namespace frugal {

FRUGAL_INLINE at::Tensor Contrastive::of(at::Tensor const& views_B2D) const {
  if (!(temperature > 0)) {
    throw SettingsError({.what = "the temperature is out of range",
                         .where = "Contrastive",
                         .why = "it is " + std::to_string(temperature),
                         .fix = "Set it above 0."});
  }
  // Autocast would round the similarities to 16 bits before they are divided by the temperature.
  c10::impl::ExcludeDispatchKeyGuard const no_autocast(c10::autocast_dispatch_keyset);
  at::Tensor const rows = views_B2D.flatten(0, 1);
  at::Tensor const unit = rows / rows.norm(2, 1, /*keepdim=*/true).clamp_min(1e-12);
  std::int64_t const count = unit.size(0);
  at::Tensor const itself = at::eye(count, unit.options().dtype(at::kBool).requires_grad(false));
  at::Tensor const similar =
      unit.matmul(unit.t())
          .div(temperature)
          .masked_fill(itself, at::Scalar(-std::numeric_limits<double>::infinity()));
  // Views 2 i and 2 i + 1 are of one sample.
  at::Tensor const other =
      at::arange(count, unit.options().dtype(at::kLong).requires_grad(false)).bitwise_xor(1);
  return at::cross_entropy_loss(similar, other);
}

}  // namespace frugal
