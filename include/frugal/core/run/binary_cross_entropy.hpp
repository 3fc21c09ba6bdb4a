// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, C classes, ... whatever one sample has.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include <frugal/core/run/forward_batch.hpp>
#include <frugal/core/run/loss.hpp>
#include <frugal/core/run/objective.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/fields.hpp>
#include <frugal/core/source/labels.hpp>

namespace frugal {

/// Binary cross entropy of logits [B, ...] with labels of one shape, or of [B, 1] with [B]: the
/// mean over the labels, weighted by their number. Labels are 0, 1 or a probability, of any type.
/// Values are those of torch.nn.BCEWithLogitsLoss.
///
/// Labels of -100 are ignored, and so is the padding of a PaddedBatch with a target for each
/// position. A batch without any other has loss 0 and weight 0. Labels in host memory are counted
/// there. On a device the batch's own count (CountsLabels) is that of int64 labels; for others see
/// `counts_on_device`.
/// Throws ShapeError with both shapes if the logits do not fit the labels, and LabelError for a label in host memory
/// that is not from 0 to 1.
struct BinaryCrossEntropy {
  /// For each class of logits [B, C, ...], or one of all: multiplies a label's loss, as PyTorch's
  /// `weight`. The mean is over the number of labels, not over their weights.
  ClassWeights class_weights{};
  /// Likewise: multiplies the positive part of a label's loss, as PyTorch's `pos_weight`. With
  /// negatives / positives of a class both count alike.
  ClassWeights positive_weights{};
  /// Counts labels on a device that the batch has not counted, with one host sync per micro-batch.
  /// Otherwise all of them but padding have weight, -100 included: set it if there are such labels.
  /// A PaddedBatch counts int64 labels, and no others.
  bool counts_on_device = false;

  template <class Module, class B = Batch>
    requires HasData<B> && detail::TensorTarget<B>
  Loss operator()(Module& module, B const& batch) const {
    at::Tensor output = forward_batch(module, batch);
    at::Tensor const& target = batch_target(batch);
    at::Tensor const logits = detail::at_least_float(fitting(output, target));
    at::Tensor const labels = target.to(logits.scalar_type());

    at::Tensor const mask = detail::mask_of(batch, labels);
    bool const all_count = target.is_cpu() && !mask.defined() && none_ignored(target);
    if (all_count) {
      detail::require_label_range(labels, 1, "BinaryCrossEntropy");
      return {.value = losses(logits, labels, at::Reduction::Mean),
              .weight = static_cast<double>(target.numel()),
              .output = std::move(output)};
    }
    at::Tensor counts = target.ne(ignored_label);
    if (mask.defined()) counts = counts.logical_and(mask);
    // An ignored label is 0 until its loss is left out: its own would be large.
    at::Tensor const ignored = counts.logical_not();
    at::Tensor const counted = labels.masked_fill(ignored, at::Scalar(0));
    detail::require_label_range(counted, 1, "BinaryCrossEntropy");
    at::Tensor const each = losses(logits, counted, at::Reduction::None);
    at::Tensor const sum = each.masked_fill(ignored, at::Scalar(0)).sum();
    return {.value = sum / counts.sum().clamp_min(1),
            .weight = weight_of(batch, target, mask, counts),
            .output = std::move(output)};
  }

 private:
  at::Tensor losses(at::Tensor const& logits, at::Tensor const& labels,
                    at::Reduction::Reduction reduction) const;
  /// A weight for each class of dimension 1, so that it broadcasts over the logits.
  static at::Tensor spread(ClassWeights const& weights, at::Tensor const& logits);

  static at::Tensor fitting(at::Tensor const& output, at::Tensor const& target);

  /// Whether every label in host memory counts. The usual types are read without an operator.
  static bool none_ignored(at::Tensor const& target);
  /// How many labels count. A batch's own count is of labels if they are int64; of a PaddedBatch
  /// with other labels it is of samples or positions.
  template <class B>
  double weight_of(B const& batch, at::Tensor const& target, at::Tensor const& mask,
                   at::Tensor const& counts) const {
    if (counts.is_cpu()) return static_cast<double>(detail::count_true_now(counts));
    if constexpr (CountsLabels<B>) {
      if (target.scalar_type() == at::kLong) return static_cast<double>(batch.counted());
    }
    if (counts_on_device) return static_cast<double>(detail::count_true_now(counts));
    if (!mask.defined()) return static_cast<double>(counts.numel());
    if constexpr (requires { batch.positions(); }) {
      std::int64_t const each = counts.numel() / std::max<std::int64_t>(mask.numel(), 1);
      return static_cast<double>(batch.positions() * each);
    } else {
      // Only the device knows how much of a mask is padding.
      return static_cast<double>(detail::count_true_now(counts));
    }
  }
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/binary_cross_entropy.ipp>
#endif
