// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/finite_weight.hpp>

#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <cmath>
#include <cstdint>
#include <limits>

namespace frugal::detail {

FRUGAL_INLINE void require_finite(at::Tensor const& weight, std::string const& name,
                                  char const* where) {
  at::NoGradGuard const no_gradients;
  at::Tensor const bad = weight.detach().isfinite().logical_not().flatten();
  if (!bad.any().item<bool>()) return;
  std::int64_t const first = bad.nonzero()[0].item<std::int64_t>();
  std::string index;
  std::int64_t rest = first, inner = bad.numel();
  for (std::int64_t const size : weight.sizes()) {
    inner /= size;
    index += (index.empty() ? "" : ", ") + std::to_string(rest / inner);
    rest %= inner;
  }
  double const value = weight.detach().flatten()[first].item<double>();
  throw ModuleError({.what = "the weight of '" + (name.empty() ? "a layer" : name) + "' is " +
                             (std::isnan(value) ? "NaN" : "infinite") + " at [" + index + "]",
                     .where = where,
                     .why = "it would become another number, or the layer's output NaN",
                     .fix = "Load finite weights."});
}

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
