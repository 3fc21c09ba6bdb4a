// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <frugal/inline.hpp>
#include <frugal/model/lora/adapter.hpp>

namespace frugal::detail {

/// PiSSA: the adapter begins as the weight's largest singular values. See LoraAdapter::begin_as().
FRUGAL_INLINE void begin_with_singular_values(LoraAdapter& adapter, at::Tensor const& weight) {
  at::NoGradGuard const no_gradients;
  at::Tensor const whole = weight.detach().to(at::promote_types(weight.scalar_type(), at::kFloat));
  auto const [left, values, right] = at::linalg_svd(whole, /*full_matrices=*/false);
  auto const rank = adapter.settings().rank;
  at::Tensor const root = (values.slice(0, 0, rank) / adapter.scale()).sqrt();
  adapter.begin_as(root.unsqueeze(1) * right.slice(0, 0, rank), left.slice(1, 0, rank) * root);
}

}  // namespace frugal::detail
