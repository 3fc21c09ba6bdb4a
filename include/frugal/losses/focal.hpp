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

/// Focal loss: cross entropy times (1 - p)^gamma, where p is the probability of the label, so that labels that are
/// predicted well count little. The mean over the labels, weighted by their number.
///
/// One logit per label, [B, ...] with [B, ...] or [B, 1] with [B]: the sigmoid form, torchvision's
/// sigmoid_focal_loss with reduction="mean"; labels are 0, 1 or a probability, of any type. Logits [B, C, ...] with
/// integer labels [B, ...]: the softmax form, the same of the label's class.
///
/// Labels of -100 are ignored, and so is the padding of a PaddedBatch with a label for each position; a batch without
/// any other has loss 0 and weight 0. Labels on a device are counted as BinaryCrossEntropy does. Logits of 16 bits are
/// widened. Throws ShapeError with both shapes if the logits do not fit the labels, and LabelError for labels
/// in host memory that are no class, or with one logit per label not from 0 to 1; there the loss is NaN on a device.
///
/// Source  Lin et al., "Focal loss for dense object detection" (2017).
struct Focal {
  double gamma = 2.0;  ///< 0 or more; 0 is cross entropy
  double alpha =
      0.25;  ///< of the sigmoid form: weight of label 1, that of label 0 is 1 - alpha; negative: both 1
  /// Of the softmax form: multiplies a label's loss. The mean divides by the number of labels.
  ClassWeights class_weights{};
  /// Counts labels on a device that the batch has not counted, with one host sync per micro-batch. Otherwise all of
  /// them have weight, -100 included: set it if there are such labels.
  bool counts_on_device = false;

  template <class Module, class B = Batch>
    requires HasData<B> && detail::TensorTarget<B>
  Loss operator()(Module& module, B const& batch) const {
    at::Tensor output = forward_batch(module, batch);
    at::Tensor const& target = batch_target(batch);
    at::Tensor const mask = detail::mask_of(batch, target);
    detail::LabelledLogits const all = detail::labelled_logits(output, target, mask, "Focal");
    return {.value = mean(all),
            .weight = detail::labels_that_count(batch, target, mask, all.counts, counts_on_device),
            .output = std::move(output)};
  }

 private:
  at::Tensor mean(detail::LabelledLogits const& all) const;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/losses/focal.ipp>
#endif
