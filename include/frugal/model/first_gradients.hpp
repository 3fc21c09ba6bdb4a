// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <string>

#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

/// Refuses trained parameters that the first window's backward pass has not reached: a layer that
/// the module's forward never calls, because it has another one in its place, would train nothing
/// and be saved as trained.
class FirstGradients {
 public:
  void check(Parameters const& parameters, char const* policy) {
    if (checked_) [[likely]]
      return;
    checked_ = true;
    require(parameters, policy);
  }

 private:
  FRUGAL_INLINE static void require(Parameters const& parameters, char const* policy) {
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
         .why =
             "the module's forward does not use them, or uses the weight of their layer in a way "
             "that cannot be intercepted",
         .fix = "Leave them out of the patterns, or freeze them. A layer must be called by its own "
                "forward, or by torch::linear, conv2d or embedding on its weight."});
  }

  bool checked_ = false;
};

}  // namespace frugal::detail
