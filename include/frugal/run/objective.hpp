// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, C classes, ... whatever one sample has.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <frugal/data/batch.hpp>
#include <frugal/data/fields.hpp>
#include <frugal/data/labels.hpp>
#include <frugal/data/shape_text.hpp>
#include <frugal/error.hpp>
#include <frugal/libtorch/parameters.hpp>
#include <frugal/run/loss.hpp>
#include <frugal/run/masked_mean.hpp>

namespace frugal {

/// An objective is any callable `(module, batch) -> at::Tensor` or `-> Loss`.
template <class O, class Module, class B>
concept ObjectiveFor =
    requires(O& objective, Module& module, B const& batch) {
      { objective(module, batch) };
    } && (std::convertible_to<std::invoke_result_t<O&, Module&, B const&>, at::Tensor> ||
          std::convertible_to<std::invoke_result_t<O&, Module&, B const&>, Loss>);

namespace detail {

/// A batch with one tensor as target.
template <class B>
concept TensorTarget = HasTarget<B> && requires(B const& batch) {
  requires IsTensor<std::remove_cvref_t<decltype(batch_target(batch))>>;
};

template <class Result>
Loss as_loss(Result&& result) {
  if constexpr (std::convertible_to<Result, Loss>) {
    return std::forward<Result>(result);
  } else {
    return Loss{.value = std::forward<Result>(result)};
  }
}

/// Refuses logits that do not fit the labels; whether these are classes, not probabilities.
inline bool require_labels(at::Tensor const& logits, at::Tensor const& target) {
  bool const labels = logits.dim() == target.dim() + 1;
  bool const probabilities = logits.sizes() == target.sizes() && target.is_floating_point();
  if (logits.dim() >= 2 && logits.size(0) == target.size(0) && (labels || probabilities)) {
    return labels;
  }
  throw ShapeError(
      {.what = "the module's output does not fit the labels",
       .where = "CrossEntropy",
       .why = "logits are " + shape_text(logits) + ", labels are " + shape_text(target),
       .fix = "Return logits [B, C, ...], and give labels [B, ...] as int64 or "
              "probabilities [B, C, ...]."});
}

/// Refuses a prediction that would be broadcast.
inline void require_one_shape(at::Tensor const& output, at::Tensor const& target) {
  if (output.sizes() == target.sizes()) return;
  throw ShapeError({.what = "the module's output does not fit the target",
                    .where = "MeanSquaredError",
                    .why = "output is " + shape_text(output) + ", target is " + shape_text(target),
                    .fix = "Give both the same shape, for example with view or squeeze."});
}

}  // namespace detail

/// Softmax cross entropy of logits [B, C, ...] and class labels [B, ...] (int64), or class
/// probabilities [B, C, ...]: the mean over the labels, weighted by their number.
///
/// Labels of -100 are ignored in both, so that micro-batches of a window add up to one batch. A
/// batch whose labels are all -100 has loss 0 and weight 0. Labels are counted on the host: by the
/// batch itself (CountsLabels), or in host memory. For other batches on a device see
/// `counts_on_device`.
/// Throws ShapeError with both shapes if the logits do not fit the labels.
struct CrossEntropy {
  double label_smoothing = 0.0;
  /// Counts labels on a device that the batch has not counted, with one host sync per micro-batch.
  /// Otherwise all of them have weight, -100 included: set it if there are such labels.
  bool counts_on_device = false;

  template <class Module, class B = Batch>
    requires HasData<B> && detail::TensorTarget<B>
  Loss operator()(Module& module, B const& batch) const {
    at::Tensor logits = forward(module, batch_data(batch));
    at::Tensor const& target = batch_target(batch);
    bool const labels = detail::require_labels(logits, target);
    double const weight = labels ? count(batch, target) : terms(target);
    // The mean of none is NaN, their sum is 0.
    auto const reduction = weight == 0 ? at::Reduction::Sum : at::Reduction::Mean;
    at::Tensor value = at::cross_entropy_loss(logits, target, /*weight=*/{}, reduction,
                                              ignored_label, label_smoothing);
    return {.value = std::move(value), .weight = weight, .output = std::move(logits)};
  }

 private:
  template <class B>
  double count(B const& batch, at::Tensor const& target) const {
    if constexpr (CountsLabels<B>) {
      return static_cast<double>(batch.counted());
    } else {
      if (!target.is_cpu() && !counts_on_device) return static_cast<double>(target.numel());
      return static_cast<double>(detail::count_labels_now(target));
    }
  }
  static double terms(at::Tensor const& probabilities) {
    std::int64_t const classes = std::max<std::int64_t>(probabilities.size(1), 1);
    return static_cast<double>(probabilities.numel() / classes);
  }
};

/// Mean squared error of predictions and targets of one shape. For a batch with a `mask` [B, T]
/// that fits them (PaddedBatch), the mean over the positions of the mask, weighted by their number.
/// Throws ShapeError with both shapes if they differ: broadcasting here hides mistakes.
struct MeanSquaredError {
  template <class Module, class B = Batch>
    requires HasData<B> && detail::TensorTarget<B>
  Loss operator()(Module& module, B const& batch) const {
    at::Tensor output = forward(module, batch_data(batch));
    at::Tensor const& target = batch_target(batch);
    detail::require_one_shape(output, target);
    if constexpr (CountsLabels<B> && requires { batch.mask.dim(), batch.target_padded; }) {
      if (batch.target_padded) {
        Loss loss = masked_mean(at::mse_loss(output, target, at::Reduction::None), batch.mask,
                                batch.counted());
        loss.output = std::move(output);
        return loss;
      }
    }
    at::Tensor value = at::mse_loss(output, target);
    return {.value = std::move(value), .output = std::move(output)};
  }
};

}  // namespace frugal
