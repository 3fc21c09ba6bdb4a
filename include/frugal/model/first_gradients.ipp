// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/first_gradients.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <ATen/ATen.h>

#include <cstddef>
#include <string>

namespace frugal::detail {

FRUGAL_INLINE void FirstGradients::require(Parameters const& parameters, char const* policy) {
  std::string names;
  std::size_t count = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    at::Tensor const& each = parameters.tensors[i];
    if (!each.requires_grad() || each.grad().defined()) continue;
    if (++count <= 3) names += (names.empty() ? "'" : ", '") + parameters.names[i] + "'";
  }
  if (count == 0) return;
  if (count > 3) names += " and " + std::to_string(count - 3) + " more";
  throw ModuleError(
      {.what = "trained parameters get no gradient: " + names,
       .where = std::string(policy) + ", first step",
       .why = "the module's forward does not use them, or uses the weight of their layer in a way "
              "that cannot be intercepted",
       .fix = "Leave them out of the patterns, or freeze them. A layer must be called by its own "
              "forward, or by torch::linear, conv2d or embedding on its weight."});
}

}  // namespace frugal::detail
