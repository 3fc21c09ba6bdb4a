// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/losses/dice_loss.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <cstdint>
#include <string>

namespace frugal {

FRUGAL_INLINE at::Tensor DiceLoss::of(detail::LabelledLogits const& all) const {
  if (!(smooth > 0)) {
    throw SettingsError(
        {.what = "smooth is out of range",
         .where = "DiceLoss",
         .why = "it is " + std::to_string(smooth),
         .fix = "Set it above 0: a class may have neither labels nor probability."});
  }
  at::Tensor const counts = all.counts.unsqueeze(1);
  // A class per row of dimension 1, which one logit per label has not.
  at::Tensor p = all.is_softmax ? all.logits.softmax(1) : all.logits.sigmoid().unsqueeze(1);
  p = at::where(counts, p, at::zeros({}, p.options()));
  at::Tensor g;
  if (all.is_softmax) {
    g = at::zeros_like(p, p.options().requires_grad(false))
            .scatter_(1, all.labels.unsqueeze(1), counts.to(p.scalar_type()));
  } else {
    g = all.labels.unsqueeze(1);
  }
  auto const per_class = [](at::Tensor const& each) {
    return each.transpose(0, 1).flatten(1).sum(1);
  };
  at::Tensor const dice =
      (2 * per_class(p * g) + smooth) / (per_class(p.square()) + per_class(g.square()) + smooth);
  return 1 - dice.mean();
}

}  // namespace frugal
