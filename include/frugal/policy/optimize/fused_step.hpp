// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <vector>

namespace frugal::detail {

/// The arguments of a fused kernel: lists of equal length, one entry per parameter.
struct FusedLists {
  std::vector<at::Tensor> parameters;
  std::vector<std::vector<at::Tensor>> moments;  ///< one list per moment
  std::vector<at::Tensor> steps;                 ///< float scalars that already count this step
};

/// `Rate` is double, or a tensor if the step is captured.
template <class Rate>
struct FusedStep {
  FusedLists const& lists;
  std::vector<at::Tensor> const& gradients;
  Rate lr;
  double weight_decay;
  bool first;                          ///< the first step of every parameter in the lists
  std::optional<at::Tensor> overflow;  ///< if 1, the kernel changes nothing
};

}  // namespace frugal::detail
