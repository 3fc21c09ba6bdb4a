// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/losses/triplet.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <string>

namespace frugal {

FRUGAL_INLINE at::Tensor Triplet::of(at::Tensor const& views_B3D) const {
  if (!(margin > 0) || !(p > 0)) {
    throw SettingsError({.what = "the margin or the norm is out of range",
                         .where = "Triplet",
                         .why = "margin is " + std::to_string(margin) + ", p " + std::to_string(p),
                         .fix = "Set both above 0."});
  }
  return at::triplet_margin_loss(views_B3D.select(1, 0), views_B3D.select(1, 1),
                                 views_B3D.select(1, 2), margin, p, eps, swap, at::Reduction::Mean);
}

}  // namespace frugal
