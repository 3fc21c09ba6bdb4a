// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <frugal/inline.hpp>
#include <frugal/model/lora/adapter.hpp>

namespace frugal::detail {

/// PiSSA: the adapter gets the weight's largest singular values, and the weight keeps the others.
FRUGAL_INLINE void begin_with_singular_values(LoraAdapter& adapter, at::Tensor const& weight) {
  at::NoGradGuard const no_gradients;
  at::Tensor const whole = weight.detach().to(at::promote_types(weight.scalar_type(), at::kFloat));
  auto const [left, values, right] = at::linalg_svd(whole, /*full_matrices=*/false);
  auto const rank = adapter.settings().rank;
  at::Tensor const root = (values.slice(0, 0, rank) / adapter.scale()).sqrt();
  adapter.a().copy_(root.unsqueeze(1) * right.slice(0, 0, rank));
  adapter.b().copy_(left.slice(1, 0, rank) * root);
  weight.copy_(whole - adapter.product());
}

}  // namespace frugal::detail
