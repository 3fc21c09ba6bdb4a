// SPDX-License-Identifier: Apache-2.0
// Shapes: C classes, N decisions.
#pragma once

#include <frugal/core/run/metrics.hpp>
#include <frugal/core/run/objective.hpp>
#include <frugal/metrics/decisions.hpp>

#include <ATen/ATen.h>

#include <cstdint>
#include <string_view>

namespace frugal::detail {

/// A table of counts for C classes, over all batches, and how many labels name no class at all.
class ClassTable {
 public:
  /// Throws MetricError where a batch has another number of classes than those before.
  void require(std::int64_t classes, std::string_view metric);
  void add(at::Tensor const& counts, at::Tensor const& outside);

  /// In host memory; undefined where no batch was seen. MetricError where a label was no class.
  at::Tensor on_host(std::string_view metric) const;
  std::int64_t classes() const { return classes_; }

  template <class Sum>
  void reduce(Sum&& sum) {
    counts_.reduce(sum);
    outside_.reduce(sum);
  }
  template <class Archive>
  void persist(Archive& archive) {
    archive("classes", classes_);
    counts_.persist(archive, "counts");
    outside_.persist(archive, "outside");
  }

 private:
  std::int64_t classes_ = 0;
  TensorTally counts_;
  Tally outside_;
};

/// Decisions whose labels count, for tables: those that do not weigh 0, and lie at class 0.
struct Countable {
  at::Tensor predicted;  ///< [N] int64
  at::Tensor labels;     ///< [N] int64, each a class
  at::Tensor weight;     ///< [N] int64, 0 or 1
  at::Tensor outside;    ///< scalar int64: labels that are no class, and not left out
};
Countable countable(Decisions const& all);

/// `weight` added up at `index`, both [N]: [size]. No wait, which bincount makes.
inline at::Tensor counted_at(at::Tensor const& index, at::Tensor const& weight, std::int64_t size) {
  return at::zeros({size}, weight.options()).scatter_add_(0, index, weight);
}

}  // namespace frugal::detail

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
