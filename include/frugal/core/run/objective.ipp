// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/objective.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>

#include <frugal/core/source/labels.hpp>
#include <frugal/core/source/shape_text.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal {

FRUGAL_INLINE at::Tensor const& ClassWeights::of(std::int64_t classes, at::Tensor const& logits,
                                                 char const* where) const {
  if (weights_.numel() != classes) {
    throw ShapeError(
        {.what = "there is not a weight for each class",
         .where = where,
         .why = std::to_string(weights_.numel()) + " weights, logits are " +
                detail::shape_text(logits),
         .fix = "Give a weight for each of the classes, " + std::to_string(classes) + " here."});
  }
  if (!placed_.defined() || placed_.device() != logits.device() ||
      placed_.scalar_type() != logits.scalar_type()) {
    placed_ = weights_.to(logits.options().requires_grad(false));
  }
  return placed_;
}

FRUGAL_INLINE Loss masked_mean(at::Tensor const& values, at::Tensor const& mask,
                               std::optional<std::int64_t> counted) {
  bool const fits = mask.defined() && values.defined() && mask.scalar_type() == at::kBool &&
                    mask.dim() <= values.dim() &&
                    mask.sizes() == values.sizes().slice(0, static_cast<std::size_t>(mask.dim()));
  if (!fits) {
    throw ShapeError({.what = "the mask does not fit the values",
                      .where = "masked_mean",
                      .why = "values are " + detail::shape_text(values) + ", the mask is " +
                             detail::shape_text(mask),
                      .fix = "Values are [B, T, ...], the mask [B, T] of bool."});
  }
  std::int64_t const positions = counted ? *counted : detail::count_true_now(mask);
  std::int64_t const each = values.numel() / std::max<std::int64_t>(mask.numel(), 1);
  at::Tensor whole = mask;
  for (std::int64_t d = mask.dim(); d < values.dim(); ++d) whole = whole.unsqueeze(-1);
  at::Tensor const sum = at::where(whole, values, at::Scalar(0)).sum();
  return {.value = sum.div(static_cast<double>(std::max<std::int64_t>(positions * each, 1))),
          .weight = static_cast<double>(positions)};
}

}  // namespace frugal

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
