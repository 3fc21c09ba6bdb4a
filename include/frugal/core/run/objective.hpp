// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, C classes, ... whatever one sample has.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/core/run/forward_batch.hpp>
#include <frugal/core/run/loss.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/fields.hpp>
#include <frugal/core/source/labels.hpp>
#include <frugal/core/source/shape_text.hpp>
#include <frugal/core/source/tensor_identity.hpp>
#include <frugal/error.hpp>

// Shapes: B samples, C classes, ... whatever one sample has.
namespace frugal {

/// A weight for each of C classes, of an objective: `{1.0, 5.0}`, a vector or a tensor [C]. None by
/// default, which is 1 for each.
///
/// SettingsError for a weight that is negative or not finite, and for a tensor of another shape.
class ClassWeights {
 public:
  ClassWeights() = default;
  ClassWeights(std::initializer_list<double> weights) : ClassWeights(std::vector(weights)) {}
  ClassWeights(std::vector<double> const& weights)
      : ClassWeights(at::tensor(weights, at::TensorOptions(at::kDouble))) {}
  ClassWeights(at::Tensor const& weights_C) : weights_(weights_C.detach().to(at::kDouble)) {
    at::Tensor const host = weights_.cpu();
    if (host.dim() == 1 && host.numel() > 0 && host.isfinite().all().item<bool>() &&
        host.ge(0).all().item<bool>()) {
      return;
    }
    throw SettingsError(
        {.what = "these are no class weights",
         .where = "ClassWeights",
         .why = detail::shape_text(weights_C) + ", and a weight is 0 or more for each of C classes",
         .fix = "Give C finite numbers, such as {1.0, 5.0}."});
  }

  bool empty() const { return !weights_.defined(); }
  /// For a comparison with those of another run.
  std::string identity() const { return detail::tensor_identity(weights_); }

  /// [C] where the logits are, of their type. Copied there once. ShapeError with both numbers if
  /// there are not `classes` weights.
  at::Tensor const& of(std::int64_t classes, at::Tensor const& logits, char const* where) const;

 private:
  at::Tensor weights_;         // [C], double
  mutable at::Tensor placed_;  // where they were used last
};

}  // namespace frugal

// Shapes: B samples, T positions, ... whatever one position has.
namespace frugal {

/// The mean of values [B, T, ...] over the positions at which a bool mask [B, T] is true, with
/// their number as its weight. Values at other positions, NaN included, have no effect and no
/// gradient. A mask that is false everywhere gives 0 with weight 0.
///
/// `counted`: the number of true positions, if the host knows it; otherwise a mask on a device is
/// counted there, with a host sync. Throws ShapeError with both shapes if the mask does not fit.
Loss masked_mean(at::Tensor const& values, at::Tensor const& mask,
                 std::optional<std::int64_t> counted = {});

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
bool require_labels(at::Tensor const& logits, at::Tensor const& target);

/// Refuses a prediction that would be broadcast.
void require_one_shape(at::Tensor const& output, at::Tensor const& target, char const* objective);

/// Logits of 16 bits in single precision: weights and sums would be rounded.
at::Tensor at_least_float(at::Tensor const& logits);

/// Where values [B, T, ...] are a sample's own, for a batch whose target is padded; undefined for
/// others. It broadcasts over the values.
template <class B>
at::Tensor mask_of([[maybe_unused]] B const& batch, [[maybe_unused]] at::Tensor const& values) {
  if constexpr (CountsLabels<B> && requires { batch.mask.dim(), batch.target_padded; }) {
    if (!batch.target_padded) return {};
    at::Tensor mask = batch.mask;
    while (mask.dim() < values.dim()) mask = mask.unsqueeze(-1);
    return mask;
  }
  return {};
}

/// An objective of predictions and targets of one shape: `errors(output, target, reduction)`.
template <class O>
concept OfErrors = requires(O const& objective, at::Tensor const& tensor) {
  { objective.errors(tensor, tensor, at::Reduction::Mean) } -> std::same_as<at::Tensor>;
};

/// The mean error; of a batch with a mask that fits, over the positions of the mask, weighted by
/// their number.
template <OfErrors O, class Module, class B>
Loss mean_error(O const& objective, Module& module, B const& batch) {
  at::Tensor output = forward_batch(module, batch);
  at::Tensor const& target = batch_target(batch);
  require_one_shape(output, target, O::name);
  if constexpr (CountsLabels<B> && requires { batch.mask.dim(), batch.target_padded; }) {
    if (batch.target_padded) {
      Loss loss = masked_mean(objective.errors(output, target, at::Reduction::None), batch.mask,
                              batch.counted());
      loss.output = std::move(output);
      return loss;
    }
  }
  at::Tensor value = objective.errors(output, target, at::Reduction::Mean);
  return {.value = std::move(value), .output = std::move(output)};
}

}  // namespace detail

/// Softmax cross entropy of logits [B, C, ...] and class labels [B, ...] (int64), or class
/// probabilities [B, C, ...]: the mean over the labels, weighted by their number. Values are those
/// of torch.nn.CrossEntropyLoss.
///
/// Labels of -100 are ignored in both, so that micro-batches of a window add up to one batch. A
/// batch whose labels are all -100 has loss 0 and weight 0. Labels are counted on the host: by the
/// batch itself (CountsLabels), or in host memory. For other batches on a device see
/// `counts_on_device`.
///
/// With class weights the mean is over the weights of the labels, and their sum is the weight of
/// the loss. It is read from where the labels are: on a device, with one host sync per micro-batch.
/// Class probabilities are multiplied by the weights, and the mean is over their number. Throws
/// ShapeError with both shapes if the logits do not fit the labels.
struct CrossEntropy {
  double label_smoothing = 0.0;  ///< share of a label that is spread over all classes
  ClassWeights class_weights{};  ///< none: 1 for each class
  /// Counts labels on a device that the batch has not counted, with one host sync per micro-batch.
  /// Otherwise all of them have weight, -100 included: set it if there are such labels.
  bool counts_on_device = false;

  template <class Module, class B = Batch>
    requires HasData<B> && detail::TensorTarget<B>
  Loss operator()(Module& module, B const& batch) const {
    at::Tensor logits = forward_batch(module, batch);
    at::Tensor const& target = batch_target(batch);
    bool const labels = detail::require_labels(logits, target);
    if (!class_weights.empty()) return weighted(std::move(logits), target, labels);
    double const weight = labels ? count(batch, target) : terms(target);
    // The mean of none is NaN, their sum is 0.
    auto const reduction = weight == 0 ? at::Reduction::Sum : at::Reduction::Mean;
    at::Tensor value = at::cross_entropy_loss(logits, target, /*weight=*/{}, reduction,
                                              ignored_label, label_smoothing);
    return {.value = std::move(value), .weight = weight, .output = std::move(logits)};
  }

 private:
  Loss weighted(at::Tensor logits, at::Tensor const& target, bool labels) const;
  template <class B>
  double count(B const& batch, at::Tensor const& target) const {
    if constexpr (CountsLabels<B>) {
      return static_cast<double>(batch.counted());
    } else {
      if (!target.is_cpu() && !counts_on_device) return static_cast<double>(target.numel());
      return static_cast<double>(detail::count_labels_now(target));
    }
  }
  static double terms(at::Tensor const& probabilities);
};

/// Mean squared error of predictions and targets of one shape. For a batch with a `mask` [B, T]
/// that fits them (PaddedBatch), the mean over the positions of the mask, weighted by their number.
/// Throws ShapeError with both shapes if they differ: broadcasting here hides mistakes.
struct MeanSquaredError {
  static constexpr char const* name = "MeanSquaredError";

  static at::Tensor errors(at::Tensor const& output, at::Tensor const& target,
                           at::Reduction::Reduction reduction) {
    return at::mse_loss(output, target, reduction);
  }
  template <class Module, class B = Batch>
    requires HasData<B> && detail::TensorTarget<B>
  Loss operator()(Module& module, B const& batch) const {
    return detail::mean_error(*this, module, batch);
  }
};

/// Mean absolute error, torch.nn.L1Loss: less drawn to outliers than the squared one. Shapes, masks
/// and errors as MeanSquaredError.
struct L1 {
  static constexpr char const* name = "L1";

  static at::Tensor errors(at::Tensor const& output, at::Tensor const& target,
                           at::Reduction::Reduction reduction) {
    return at::l1_loss(output, target, reduction);
  }
  template <class Module, class B = Batch>
    requires HasData<B> && detail::TensorTarget<B>
  Loss operator()(Module& module, B const& batch) const {
    return detail::mean_error(*this, module, batch);
  }
};

/// Huber's loss, torch.nn.HuberLoss: half the squared error up to `delta`, and from there on
/// delta * (error - delta / 2). Shapes, masks and errors as MeanSquaredError.
struct Huber {
  static constexpr char const* name = "Huber";

  double delta = 1.0;  ///< in the target's unit, above 0

  at::Tensor errors(at::Tensor const& output, at::Tensor const& target,
                    at::Reduction::Reduction reduction) const {
    return at::huber_loss(output, target, reduction, delta);
  }
  template <class Module, class B = Batch>
    requires HasData<B> && detail::TensorTarget<B>
  Loss operator()(Module& module, B const& batch) const {
    return detail::mean_error(*this, module, batch);
  }
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/objective.ipp>
#endif
