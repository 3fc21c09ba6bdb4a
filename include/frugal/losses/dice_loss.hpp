// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, C classes, ... whatever one sample has.
#pragma once

#include <ATen/ATen.h>

#include <utility>

#include <frugal/core/run/forward_batch.hpp>
#include <frugal/core/run/loss.hpp>
#include <frugal/core/run/objective.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/fields.hpp>
#include <frugal/losses/labels_that_count.hpp>

namespace frugal {

/// Soft Dice loss of V-Net: 1 - (2 sum p g + smooth) / (sum p^2 + sum g^2 + smooth), where p is the probability of a
/// class and g is 1 at its labels and else 0. The sums are over all positions of the batch, not of each image.
///
/// Logits [B, C, ...] with integer labels [B, ...]: the softmax, and the mean over all C classes, background
/// included. One logit per label, [B, ...] with [B, ...] or [B, 1] with [B]: the sigmoid, and class 1 alone.
///
/// The loss is a ratio of sums, so that the mean over micro-batches is not the loss of their union. A window of
/// Accumulate<N> descends the mean of the losses of its micro-batches, weighted by their labels; a ragged last batch
/// counts by its labels. Use micro-batches that have every class, or add it to a loss of positions.
///
/// Labels of -100 are ignored, in all sums; a batch without any other has loss 0 and weight 0. A class that is not
/// among a batch's labels has a loss of nearly 1 while it is predicted. Labels on a device are counted as
/// BinaryCrossEntropy does. Logits of 16 bits are widened. Throws ShapeError with both shapes if the logits do not fit
/// the labels, and LabelError for labels
/// in host memory that are no class, or with one logit per label not from 0 to 1; there the loss is NaN on a device.
///
/// Source  Milletari, Navab, Ahmadi, "V-Net" (2016), equation 2; `smooth` is not in the paper.
struct DiceLoss {
  double smooth = 1e-5;  ///< above 0: what a class without labels and probability is divided by
  /// Counts labels on a device that the batch has not counted, with one host sync per micro-batch. Otherwise all of
  /// them have weight, -100 included: set it if there are such labels.
  bool counts_on_device = false;

  template <class Module, class B = Batch>
    requires HasData<B> && detail::TensorTarget<B>
  Loss operator()(Module& module, B const& batch) const {
    at::Tensor output = forward_batch(module, batch);
    at::Tensor const& target = batch_target(batch);
    at::Tensor const mask = detail::mask_of(batch, target);
    detail::LabelledLogits const all = detail::labelled_logits(output, target, mask, "DiceLoss");
    return {.value = of(all),
            .weight = detail::labels_that_count(batch, target, mask, all.counts, counts_on_device),
            .output = std::move(output)};
  }

 private:
  at::Tensor of(detail::LabelledLogits const& all) const;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/losses/dice_loss.ipp>
#endif
