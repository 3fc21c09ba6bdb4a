// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include <frugal/core/run/scalars.hpp>

namespace frugal {

/// The result of an objective that returns more than a loss tensor.
struct Loss {
  at::Tensor value;  ///< one number, the mean over what `weight` counts
  /// Samples or tokens averaged over; nothing means the batch's samples. The loop fills it in.
  std::optional<double> weight{};
  at::Tensor output{};  ///< what the module predicted, for metrics; may be undefined
  /// For logs, each averaged as the loss is: `{{"kl", kl}, {"beta", 0.5}}`.
  Scalars scalars{};
};

}  // namespace frugal
