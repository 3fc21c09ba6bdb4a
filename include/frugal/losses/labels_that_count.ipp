// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/losses/labels_that_count.hpp>

#include <frugal/core/source/shape_text.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <limits>

namespace frugal::detail {

FRUGAL_INLINE LabelledLogits labelled_logits(at::Tensor const& output, at::Tensor const& target,
                                             at::Tensor const& mask, char const* objective) {
  at::Tensor logits = at_least_float(output);
  bool const is_softmax = output.dim() == target.dim() + 1 && output.dim() >= 2 &&
                          output.size(1) >= 2 && output.size(0) == target.size(0) &&
                          output.sizes().slice(2) == target.sizes().slice(1) &&
                          !target.is_floating_point();
  bool const one_column = output.dim() == 2 && output.size(1) == 1 && target.dim() == 1 &&
                          output.size(0) == target.size(0);
  if (!is_softmax && !one_column && output.sizes() != target.sizes()) {
    throw ShapeError(
        {.what = "the module's output does not fit the labels",
         .where = objective,
         .why = "logits are " + shape_text(output) + ", labels are " + shape_text(target),
         .fix = "Return logits [B, C, ...] with labels [B, ...] of an integer type; or one logit "
                "per label: both of one shape, or [B, 1] with [B]."});
  }
  if (one_column) logits = logits.squeeze(1);
  // A label of one byte is never -100: a comparison as bytes would take 156 for it.
  at::Tensor const whole = target.is_floating_point() ? target : target.to(at::kLong);
  at::Tensor counts = whole.ne(ignored_label);
  if (mask.defined()) counts = counts.logical_and(mask);
  at::Tensor labels = is_softmax ? whole : whole.to(logits.scalar_type());
  labels = labels.masked_fill(counts.logical_not(), at::Scalar(0));
  require_label_range(labels, is_softmax ? logits.size(1) - 1 : 1, objective);
  if (!labels.is_cpu() && !is_softmax) {
    // Nobody waits to know; a class that is none is CUDA's own error.
    at::Tensor const inside = labels.ge(-0.01).logical_and_(labels.le(1.01));
    labels = labels.masked_fill(inside.logical_not_(), std::numeric_limits<double>::quiet_NaN());
  }
  return {.logits = logits, .labels = labels, .counts = counts, .is_softmax = is_softmax};
}

}  // namespace frugal::detail
