// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, C classes, ... whatever one sample has.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>

#include <frugal/core/run/objective.hpp>
#include <frugal/core/source/labels.hpp>

namespace frugal::detail {

/// What an objective of class labels reads of a batch.
struct LabelledLogits {
  at::Tensor
      logits;  ///< [B, C, ...] with `is_softmax`, or of the labels' shape; single precision at least
  at::Tensor labels;  ///< [B, ...]; those that do not count are 0
  at::Tensor counts;  ///< [B, ...] bool
  bool is_softmax = false;
};

/// Logits [B, C, ...] of two classes or more with integer labels [B, ...]; or one logit per label, [B, ...] with
/// [B, ...], or [B, 1] with [B]. Labels of -100 do not count, and neither does what `mask`, which may be undefined,
/// leaves out. Throws ShapeError with both shapes for anything else, and LabelError for a label in host memory that is
/// no class, or with one logit per label not from 0 to 1. On a device the one is CUDA's own error, and the other makes
/// the loss NaN.
LabelledLogits labelled_logits(at::Tensor const& output, at::Tensor const& target,
                               at::Tensor const& mask, char const* objective);

/// How many labels count: on the host, where they are, or by the batch itself; otherwise all of them, unless
/// `counts_on_device`, which waits.
template <class B>
double labels_that_count(B const& batch, at::Tensor const& target, at::Tensor const& mask,
                         at::Tensor const& counts, bool counts_on_device) {
  if (counts.is_cpu()) return static_cast<double>(count_true_now(counts));
  if constexpr (CountsLabels<B>) {
    if (target.scalar_type() == at::kLong) return static_cast<double>(batch.counted());
  }
  if (counts_on_device) return static_cast<double>(count_true_now(counts));
  if (!mask.defined()) return static_cast<double>(counts.numel());
  if constexpr (requires { batch.positions(); }) {
    std::int64_t const each = counts.numel() / std::max<std::int64_t>(mask.numel(), 1);
    return static_cast<double>(batch.positions() * each);
  } else {
    return static_cast<double>(count_true_now(counts));
  }
}

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/losses/labels_that_count.ipp>
#endif
