// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/dropped_weight.hpp>

#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/inline.hpp>

#include <cmath>
#include <limits>

namespace frugal::detail {

FRUGAL_INLINE void drop_weight(torch::nn::Module& layer, at::Tensor weight) {
  at::NoGradGuard const no_gradients;
  own_parameters(layer).erase("weight");
  weight.mutable_grad().reset();
  weight.set_requires_grad(false);
  weight.set_data(at::full({}, std::numeric_limits<float>::quiet_NaN(), weight.options())
                      .expand(weight.sizes()));
}

FRUGAL_INLINE bool is_dropped(at::Tensor const& weight) {
  // A single number takes no less memory than its copies.
  if (weight.numel() == 1) return std::isnan(weight.detach().item<double>());
  return weight.numel() > 1 && weight.storage().nbytes() < weight.nbytes();
}

}  // namespace frugal::detail
