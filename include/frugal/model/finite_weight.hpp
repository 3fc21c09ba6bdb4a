// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <cstdint>
#include <string>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

/// ModuleError for a number of a weight that is not finite. `name`: of the layer, or empty.
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

}  // namespace frugal::detail
