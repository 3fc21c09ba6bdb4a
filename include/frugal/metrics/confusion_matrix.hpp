// SPDX-License-Identifier: Apache-2.0
// Shapes: C classes.
#pragma once

#include <string_view>

#include <frugal/core/run/metrics.hpp>
#include <frugal/core/run/objective.hpp>
#include <frugal/metrics/class_counts.hpp>
#include <frugal/metrics/decisions.hpp>

namespace frugal {

/// How often each class was taken for each other one: `metrics.table("confusion_matrix")` is
/// [C, C] int64 in host memory, a row for each label and a column for each prediction, as
/// scikit-learn has it. As numbers it gives "balanced_accuracy", the mean recall of the classes
/// that have labels, and "cohen_kappa", the agreement beyond chance (NaN where chance is certain).
///
/// Takes what Accuracy takes; labels of -100 are left out. MetricError for other shapes and for
/// labels that name no class. State: C * C numbers, in a report 8 * C * C bytes a validation.
class ConfusionMatrix {
 public:
  static constexpr std::string_view name = "confusion_matrix";
  static constexpr bool whole_numbers = true;  // counts: exact in any order

  template <class B>
  void add(Loss const& loss, B const& batch) {
    detail::Decisions const all = detail::decisions_of(loss, batch, name);
    table_.require(all.classes, name);
    detail::Countable const what = detail::countable(all);
    table_.add(detail::counted_at(what.labels * all.classes + what.predicted, what.weight,
                                  all.classes * all.classes)
                   .view({all.classes, all.classes}),
               what.outside);
  }
  template <class Sum>
  void reduce(Sum&& sum) {
    table_.reduce(sum);
  }
  Metrics result() const;
  template <class Archive>
  void persist(Archive& archive) {
    table_.persist(archive);
  }

 private:
  detail::ClassTable table_;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/metrics/confusion_matrix.ipp>
#endif
