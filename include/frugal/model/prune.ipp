// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/prune.hpp>

#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE void require_sparsity(double sparsity) {
  if (sparsity > 0 && sparsity < 1) return;
  throw SettingsError({.what = "Prune has a sparsity of " + std::to_string(sparsity),
                       .where = "Prune::sparsity",
                       .why = "it is the share of weights that are pruned",
                       .fix = "Give a number between 0 and 1, such as 0.9."});
}

}  // namespace frugal::detail
