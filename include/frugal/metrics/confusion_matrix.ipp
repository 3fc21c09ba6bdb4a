// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/metrics/confusion_matrix.hpp>

#include <frugal/inline.hpp>

#include <ATen/ATen.h>

namespace frugal {

FRUGAL_INLINE Metrics ConfusionMatrix::result() const {
  at::Tensor counts = table_.on_host(name);
  if (!counts.defined()) counts = at::zeros({0, 0}, at::kDouble);
  at::Tensor const labels = counts.sum(1);
  at::Tensor const right = counts.diagonal();
  at::Tensor const there = labels.gt(0);
  Metrics found;
  found.set("balanced_accuracy",
            right.masked_select(there).div(labels.masked_select(there)).mean().item<double>());
  // Without a division by the number of decisions: small counts stay whole numbers.
  double const all = labels.sum().item<double>();
  double const by_chance = labels.dot(counts.sum(0)).item<double>();
  double const agreed = right.sum().item<double>();
  found.set("cohen_kappa", (all * agreed - by_chance) / (all * all - by_chance));
  found.set_table(name, counts.to(at::kLong));
  return found;
}

}  // namespace frugal
