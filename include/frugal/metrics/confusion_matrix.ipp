// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/metrics/confusion_matrix.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <string>

namespace frugal::detail {

FRUGAL_INLINE void ClassTable::require(std::int64_t classes, std::string_view metric) {
  if (classes_ == 0) classes_ = classes;
  if (classes_ == classes) return;
  throw MetricError(
      {.what = "the number of classes changes from batch to batch",
       .where = "metric " + std::string(metric),
       .why = "it was " + std::to_string(classes_) + ", and is " + std::to_string(classes),
       .fix = "Return logits [B, C, ...] of one C from the objective."});
}

FRUGAL_INLINE void ClassTable::add(at::Tensor const& counts, at::Tensor const& outside) {
  counts_.add(counts);
  outside_.add(outside);
}

FRUGAL_INLINE at::Tensor ClassTable::on_host(std::string_view metric) const {
  double const outside = outside_.value();
  if (outside != 0) refuse_labels(static_cast<std::int64_t>(outside), classes_, metric);
  return counts_.on_host();
}

FRUGAL_INLINE Countable countable(Decisions const& all) {
  at::Tensor const inside = all.labels.ge(0).logical_and_(all.labels.lt(all.classes));
  at::Tensor const outside = inside.logical_not().logical_and_(all.labels.ne(ignored_label));
  at::Tensor const weight = inside.to(at::kLong);
  return {all.predicted, all.labels * weight, weight, outside.sum()};
}

}  // namespace frugal::detail

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
