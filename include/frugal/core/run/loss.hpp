// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include <frugal/core/run/scalars.hpp>
#include <frugal/core/run/task_outputs.hpp>

namespace frugal {

/// The gradients of a loss whose objective computes them itself, as a compiled step does: the loop asks this in
/// place of autograd.
class LossGradients {
 public:
  LossGradients() = default;
  LossGradients(LossGradients const&) = delete;
  LossGradients& operator=(LossGradients const&) = delete;
  virtual ~LossGradients() = default;

  /// Adds the gradients of `loss`, times `seed`, to those of the parameters; at most once per loss. `value` is
  /// that of the seed, if the host knows it. Throws ModuleError if these are the gradients of another loss.
  virtual void add(at::Tensor const& loss, at::Tensor const& seed, std::optional<double> value) = 0;
};

/// The result of an objective that returns more than a loss tensor.
struct Loss {
  at::Tensor value;  ///< one number, the mean over what `weight` counts
  /// Samples or tokens averaged over; nothing means the batch's samples. The loop fills it in.
  std::optional<double> weight{};
  at::Tensor output{};  ///< what the module predicted, for metrics; may be undefined
  /// For logs, each averaged as the loss is: `{{"kl", kl}, {"beta", 0.5}}`.
  Scalars scalars{};
  /// Of an objective with several tasks, for the metrics of each: `{{"age", years, batch.age}}`.
  TaskOutputs tasks{};
  /// Of an objective that computes gradients itself, which owns this until its next call; null: autograd does.
  LossGradients* gradients = nullptr;
};

namespace detail {

/// The backward pass of a loss. `value` is that of the seed, if the host knows it.
inline void backward(Loss const& loss, at::Tensor const& seed, std::optional<double> value) {
  if (loss.gradients == nullptr) [[likely]] {
    loss.value.backward(seed);
  } else {
    loss.gradients->add(loss.value, seed, value);
  }
}

}  // namespace detail
}  // namespace frugal
