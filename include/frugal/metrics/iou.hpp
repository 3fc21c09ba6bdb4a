// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, C classes, ... whatever one sample has.
#pragma once

#include <cstdint>
#include <string_view>

#include <frugal/core/run/metrics.hpp>
#include <frugal/core/run/objective.hpp>
#include <frugal/metrics/class_overlap.hpp>
#include <frugal/metrics/decisions.hpp>

namespace frugal {

/// Mean intersection over union: "iou", for each class the share of positions that are both predicted and labelled
/// as it, of those that are either; and the mean over the classes that are predicted or are labels at least once.
/// `metrics.table("iou")` has that of each class, [C] double in host memory, NaN for a class that is neither.
///
/// The counts are of the whole set, not of each image: values are those of torchmetrics' JaccardIndex with
/// average="macro", and of scikit-learn's jaccard_score over the classes that are there. Takes what Accuracy takes;
/// labels of -100 are left out. Without a label that counts it is NaN. State: three numbers per class.
class IoU {
 public:
  static constexpr std::string_view name = "iou";
  static constexpr bool whole_numbers = true;  // counts: exact in any order

  template <class B>
  void add(Loss const& loss, B const& batch) {
    overlap_.add(detail::decisions_of(loss, batch, name), name);
  }
  template <class Sum>
  void reduce(Sum&& sum) {
    overlap_.reduce(sum);
  }
  Metrics result() const { return overlap_.iou(name); }
  /// For IgnoreIndex: without the class whose labels it leaves out. Predictions of it remain, and it would be 0.
  Metrics result_without(std::int64_t label) const { return overlap_.iou(name, label); }
  template <class Archive>
  void persist(Archive& archive) {
    overlap_.persist(archive);
  }

 private:
  detail::ClassOverlap overlap_;
};

}  // namespace frugal
