// SPDX-License-Identifier: Apache-2.0
// Shapes: C classes, N decisions.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <string_view>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/metrics/decisions.hpp>
#include <frugal/metrics/tally.hpp>

namespace frugal::detail {

/// A table of counts for C classes, over all batches, and how many labels name no class at all.
class ClassTable {
 public:
  /// Throws MetricError where a batch has another number of classes than those before.
  FRUGAL_INLINE void require(std::int64_t classes, std::string_view metric) {
    if (classes_ == 0) classes_ = classes;
    if (classes_ == classes) return;
    throw MetricError(
        {.what = "the number of classes changes from batch to batch",
         .where = "metric " + std::string(metric),
         .why = "it was " + std::to_string(classes_) + ", and is " + std::to_string(classes),
         .fix = "Return logits [B, C, ...] of one C from the objective."});
  }
  FRUGAL_INLINE void add(at::Tensor const& counts, at::Tensor const& outside) {
    counts_.add(counts);
    outside_.add(outside);
  }

  /// In host memory; undefined where no batch was seen. MetricError where a label was no class.
  FRUGAL_INLINE at::Tensor on_host(std::string_view metric) const {
    double const outside = outside_.value();
    if (outside != 0) refuse_labels(static_cast<std::int64_t>(outside), classes_, metric);
    return counts_.on_host();
  }
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
FRUGAL_INLINE Countable countable(Decisions const& all) {
  at::Tensor const inside = all.labels.ge(0).logical_and_(all.labels.lt(all.classes));
  at::Tensor const outside = inside.logical_not().logical_and_(all.labels.ne(ignored_label));
  at::Tensor const weight = inside.to(at::kLong);
  return {all.predicted, all.labels * weight, weight, outside.sum()};
}

/// `weight` added up at `index`, both [N]: [size]. No wait, which bincount makes.
inline at::Tensor counted_at(at::Tensor const& index, at::Tensor const& weight, std::int64_t size) {
  return at::zeros({size}, weight.options()).scatter_add_(0, index, weight);
}

}  // namespace frugal::detail
