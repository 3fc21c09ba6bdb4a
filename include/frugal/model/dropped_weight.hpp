// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include <cmath>
#include <limits>

#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

/// Takes the weight's numbers out of memory, and the weight out of the module's parameters: another
/// form of it has them. What reads it in another way than by its layer gets NaN.
FRUGAL_INLINE void drop_weight(torch::nn::Module& layer, at::Tensor weight) {
  at::NoGradGuard const no_gradients;
  own_parameters(layer).erase("weight");
  weight.mutable_grad().reset();
  weight.set_requires_grad(false);
  weight.set_data(at::full({}, std::numeric_limits<float>::quiet_NaN(), weight.options())
                      .expand(weight.sizes()));
}

/// Whether drop_weight() was called on it.
FRUGAL_INLINE bool is_dropped(at::Tensor const& weight) {
  // A single number takes no less memory than its copies.
  if (weight.numel() == 1) return std::isnan(weight.detach().item<double>());
  return weight.numel() > 1 && weight.storage().nbytes() < weight.nbytes();
}

}  // namespace frugal::detail
