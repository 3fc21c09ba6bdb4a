// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/metrics/class_counts.hpp>

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
