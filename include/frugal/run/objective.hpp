// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, C classes, ... whatever one sample has.
#pragma once

#include <ATen/ATen.h>

#include <concepts>
#include <optional>
#include <type_traits>
#include <utility>

#include <frugal/data/batch.hpp>
#include <frugal/error.hpp>
#include <frugal/libtorch/parameters.hpp>
#include <frugal/run/scalars.hpp>

namespace frugal {

/// What an objective may return in place of a bare tensor.
struct Loss {
  at::Tensor value;  ///< one number, the mean over what `weight` counts
  /// Samples or tokens averaged over; nothing means the batch's samples. The loop fills it in.
  std::optional<double> weight{};
  at::Tensor output{};  ///< what the module predicted, for metrics; may be undefined
  /// For logs, each averaged as the loss is: `{{"kl", kl}, {"beta", 0.5}}`.
  Scalars scalars{};
};

/// An objective is any callable `(module, batch) -> at::Tensor` or `-> Loss`.
template <class O, class Module, class B>
concept ObjectiveFor =
    requires(O& objective, Module& module, B const& batch) {
      { objective(module, batch) };
    } && (std::convertible_to<std::invoke_result_t<O&, Module&, B const&>, at::Tensor> ||
          std::convertible_to<std::invoke_result_t<O&, Module&, B const&>, Loss>);

namespace detail {

template <class Result>
Loss as_loss(Result&& result) {
  if constexpr (std::convertible_to<Result, Loss>) {
    return std::forward<Result>(result);
  } else {
    return Loss{.value = std::forward<Result>(result)};
  }
}

}  // namespace detail

/// Softmax cross entropy of logits [B, C, ...] and class labels [B, ...] (int64), or class
/// probabilities [B, C, ...]; the mean over the labels, which is also what it weighs.
/// Labels of -100 are left out of the mean but not of the weight, because counting them would
/// wait for the device: a job with padding returns its own Loss with the count it knows.
/// Throws ShapeError with both shapes when the logits do not fit the labels.
struct CrossEntropy {
  double label_smoothing = 0.0;

  template <class Module>
  Loss operator()(Module& module, Batch const& batch) const {
    at::Tensor logits = forward(module, batch.data);
    check(logits, batch.target);
    at::Tensor value =
        at::cross_entropy_loss(logits, batch.target, /*weight=*/{}, at::Reduction::Mean,
                               /*ignore_index=*/-100, label_smoothing);
    bool const labels = logits.dim() == batch.target.dim() + 1;
    auto const terms = static_cast<double>(labels ? batch.target.numel() : batch.target.size(0));
    return {.value = std::move(value), .weight = terms, .output = std::move(logits)};
  }

 private:
  static void check(at::Tensor const& logits, at::Tensor const& target) {
    bool const labels = logits.dim() == target.dim() + 1;
    bool const probabilities = logits.sizes() == target.sizes() && target.is_floating_point();
    if (logits.dim() >= 2 && logits.size(0) == target.size(0) && (labels || probabilities)) return;
    throw ShapeError({.what = "the module's output does not fit the labels",
                      .where = "CrossEntropy",
                      .why = "logits are " + detail::shape_text(logits) + ", labels are " +
                             detail::shape_text(target),
                      .fix = "Logits are [B, C, ...], labels [B, ...] as int64 or [B, C, ...] as "
                             "probabilities."});
  }
};

/// Mean squared error of predictions and targets of one shape.
/// Throws ShapeError with both shapes when they differ: broadcasting here hides mistakes.
struct MeanSquaredError {
  template <class Module>
  Loss operator()(Module& module, Batch const& batch) const {
    at::Tensor output = forward(module, batch.data);
    if (output.sizes() != batch.target.sizes()) {
      throw ShapeError({.what = "the module's output does not fit the target",
                        .where = "MeanSquaredError",
                        .why = "output is " + detail::shape_text(output) + ", target is " +
                               detail::shape_text(batch.target),
                        .fix = "Give both the same shape, for example with view or squeeze."});
    }
    at::Tensor value = at::mse_loss(output, batch.target);
    return {.value = std::move(value), .output = std::move(output)};
  }
};

}  // namespace frugal
