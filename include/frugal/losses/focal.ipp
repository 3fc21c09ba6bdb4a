// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/losses/focal.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <string>

namespace frugal {

FRUGAL_INLINE at::Tensor Focal::mean(detail::LabelledLogits const& all) const {
  if (!(gamma >= 0) || !(alpha <= 1)) {
    throw SettingsError(
        {.what = "gamma or alpha is out of range",
         .where = "Focal",
         .why = "gamma is " + std::to_string(gamma) + ", alpha " + std::to_string(alpha),
         .fix = "Set gamma to 0 or more, and alpha to 1 or less; a negative alpha "
                "weighs both labels alike."});
  }
  // The derivative of the power is infinite at 0 if gamma is below 1: there it is that of a constant.
  constexpr double least = 1e-30;
  at::Tensor each;
  if (all.is_softmax) {
    at::Tensor const log_p =
        all.logits.log_softmax(1).gather(1, all.labels.unsqueeze(1)).squeeze(1);
    // 1 - p without cancellation.
    each = -log_p * log_p.expm1().neg().clamp_min(least).pow(gamma);
    if (!class_weights.empty()) {
      at::Tensor const& weights_C = class_weights.of(all.logits.size(1), all.logits, "Focal");
      each = each * weights_C.index_select(0, all.labels.flatten()).view(all.labels.sizes());
    }
  } else {
    if (!class_weights.empty()) {
      throw SettingsError({.what = "class weights are for logits of several classes",
                           .where = "Focal",
                           .why = "there is one logit per label",
                           .fix = "Set alpha, the weight of label 1."});
    }
    at::Tensor const& labels = all.labels;
    at::Tensor const missed =
        all.logits.sigmoid() * (1 - labels) + all.logits.neg().sigmoid() * labels;
    each = at::binary_cross_entropy_with_logits(all.logits, labels, /*weight=*/{},
                                                /*pos_weight=*/{}, at::Reduction::None) *
           missed.clamp_min(least).pow(gamma);
    if (alpha >= 0) each = each * (alpha * labels + (1 - alpha) * (1 - labels));
  }
  at::Tensor const sum = each.masked_fill(all.counts.logical_not(), at::Scalar(0)).sum();
  return sum / all.counts.sum().clamp_min(1);
}

}  // namespace frugal
