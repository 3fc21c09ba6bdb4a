// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <vector>

namespace frugal::detail {

/// What a fused kernel is given: lists of equal length, one entry a parameter.
struct FusedLists {
  std::vector<at::Tensor> parameters;
  std::vector<std::vector<at::Tensor>> moments;  ///< one list a moment
  std::vector<at::Tensor> steps;                 ///< float scalars, already counting this step
};

/// `Rate` is double, or a tensor where the step is captured.
template <class Rate>
struct FusedStep {
  FusedLists const& lists;
  std::vector<at::Tensor> const& gradients;
  Rate lr;
  double weight_decay;
  bool first;                          ///< the first step of every parameter in the lists
  std::optional<at::Tensor> overflow;  ///< where it is 1, the kernel changes nothing
};

}  // namespace frugal::detail
