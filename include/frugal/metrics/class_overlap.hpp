// SPDX-License-Identifier: Apache-2.0
// Shapes: C classes.
#pragma once

#include <frugal/core/run/metrics.hpp>
#include <frugal/core/run/objective.hpp>
#include <frugal/metrics/confusion_matrix.hpp>
#include <frugal/metrics/decisions.hpp>

#include <ATen/ATen.h>

#include <cstdint>
#include <string_view>

namespace frugal::detail {

/// How often each class is predicted, is a label, and is both, over all batches: counts, which are exact.
class ClassOverlap {
 public:
  void add(Decisions const& all, std::string_view metric);

  /// Intersection over union of each class, `name` as the mean and as a table [C] double in host memory. A class
  /// that is neither predicted nor a label is NaN there, and left out of the mean, and so is class `without`. Without
  /// a label that counts the mean is NaN and there is no table.
  Metrics iou(std::string_view name, std::int64_t without = -1) const;
  /// The same of 2 * intersection / (predicted + labels).
  Metrics dice(std::string_view name, std::int64_t without = -1) const;

  template <class Sum>
  void reduce(Sum&& sum) {
    table_.reduce(sum);
  }
  template <class Archive>
  void persist(Archive& archive) {
    table_.persist(archive);
  }

 private:
  Metrics shares(std::string_view name, bool of_union, std::int64_t without) const;

  ClassTable table_;  ///< [3, C]: both, predicted, labels
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/metrics/class_overlap.ipp>
#endif
