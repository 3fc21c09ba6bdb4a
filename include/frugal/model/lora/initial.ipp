// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/lora/initial.hpp>

#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE void begin_with_singular_values(LoraAdapter& adapter, at::Tensor const& weight) {
  at::NoGradGuard const no_gradients;
  at::Tensor const whole = weight.detach().to(at::promote_types(weight.scalar_type(), at::kFloat));
  auto const [left, values, right] = at::linalg_svd(whole, /*full_matrices=*/false);
  auto const rank = adapter.settings().rank;
  at::Tensor const root = (values.slice(0, 0, rank) / adapter.scale()).sqrt();
  adapter.begin_as(root.unsqueeze(1) * right.slice(0, 0, rank), left.slice(1, 0, rank) * root);
}

}  // namespace frugal::detail
