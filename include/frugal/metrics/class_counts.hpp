// SPDX-License-Identifier: Apache-2.0
// Shapes: C classes, N decisions.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string_view>

#include <frugal/metrics/decisions.hpp>
#include <frugal/metrics/tally.hpp>

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

#ifndef FRUGAL_COMPILED
#include <frugal/metrics/class_counts.ipp>
#endif
