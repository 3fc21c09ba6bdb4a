// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/objective.hpp>

#include <frugal/core/source/shape_text.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <cstdint>

namespace frugal::detail {

FRUGAL_INLINE bool require_labels(at::Tensor const& logits, at::Tensor const& target) {
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

FRUGAL_INLINE void require_one_shape(at::Tensor const& output, at::Tensor const& target,
                                     char const* objective) {
  if (output.sizes() == target.sizes()) return;
  throw ShapeError({.what = "the module's output does not fit the target",
                    .where = objective,
                    .why = "output is " + shape_text(output) + ", target is " + shape_text(target),
                    .fix = "Give both the same shape, for example with view or squeeze."});
}

FRUGAL_INLINE at::Tensor at_least_float(at::Tensor const& logits) {
  bool const half = logits.scalar_type() == at::kHalf || logits.scalar_type() == at::kBFloat16;
  return half ? logits.to(at::kFloat) : logits;
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE Loss CrossEntropy::weighted(at::Tensor logits, at::Tensor const& target,
                                          bool labels) const {
  at::Tensor const exact = detail::at_least_float(logits);
  at::Tensor const& weights_C = class_weights.of(logits.size(1), exact, "CrossEntropy");
  auto const loss = [&](at::Reduction::Reduction reduction) {
    return at::cross_entropy_loss(exact, target, weights_C, reduction, ignored_label,
                                  label_smoothing);
  };
  if (!labels) {
    double const weight = terms(target);
    at::Tensor value = loss(weight == 0 ? at::Reduction::Sum : at::Reduction::Mean);
    return {.value = std::move(value), .weight = weight, .output = std::move(logits)};
  }
  // First: it says what is wrong with a label that is no class.
  at::Tensor const sum = loss(at::Reduction::Sum);
  at::Tensor const counts = target.ne(ignored_label);
  at::Tensor const own = weights_C.index_select(0, target.mul(counts).flatten());
  double const weight = own.mul(counts.flatten()).sum(at::kDouble).item<double>();
  return {.value = weight == 0 ? sum : sum / weight, .weight = weight, .output = std::move(logits)};
}

FRUGAL_INLINE double CrossEntropy::terms(at::Tensor const& probabilities) {
  std::int64_t const classes = std::max<std::int64_t>(probabilities.size(1), 1);
  return static_cast<double>(probabilities.numel() / classes);
}

}  // namespace frugal
