// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/binary_cross_entropy.hpp>

#include <frugal/core/source/shape_text.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <vector>

namespace frugal {

FRUGAL_INLINE at::Tensor BinaryCrossEntropy::losses(at::Tensor const& logits,
                                                    at::Tensor const& labels,
                                                    at::Reduction::Reduction reduction) const {
  return at::binary_cross_entropy_with_logits(logits, labels, spread(class_weights, logits),
                                              spread(positive_weights, logits), reduction);
}

FRUGAL_INLINE at::Tensor BinaryCrossEntropy::spread(ClassWeights const& weights,
                                                    at::Tensor const& logits) {
  if (weights.empty()) return {};
  std::int64_t const classes = logits.dim() >= 2 ? logits.size(1) : 1;
  at::Tensor const& each = weights.of(classes, logits, "BinaryCrossEntropy");
  std::vector<std::int64_t> shape(static_cast<std::size_t>(logits.dim()), 1);
  if (logits.dim() >= 2) shape[1] = classes;
  return each.view(shape);
}

FRUGAL_INLINE at::Tensor BinaryCrossEntropy::fitting(at::Tensor const& output,
                                                     at::Tensor const& target) {
  if (output.sizes() == target.sizes()) return output;
  if (output.dim() == 2 && output.size(1) == 1 && target.dim() == 1 &&
      output.size(0) == target.size(0)) {
    return output.squeeze(1);
  }
  throw ShapeError({.what = "the module's output does not fit the labels",
                    .where = "BinaryCrossEntropy",
                    .why = "logits are " + detail::shape_text(output) + ", labels are " +
                           detail::shape_text(target),
                    .fix = "Give both the same shape, or logits [B, 1] and labels [B]. "
                           "CrossEntropy takes the logits of several classes."});
}

FRUGAL_INLINE bool BinaryCrossEntropy::none_ignored(at::Tensor const& target) {
  std::int64_t const counted =
      target.scalar_type() == at::kFloat
          ? detail::count_on_host<float>(
                target, [](float each) { return each != static_cast<float>(ignored_label); })
          : detail::count_labels_now(target);
  return counted == target.numel();
}

}  // namespace frugal
