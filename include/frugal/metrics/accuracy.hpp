// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, C classes, ... whatever one sample has.
#pragma once

#include <string_view>

#include <frugal/core/run/objective.hpp>
#include <frugal/metrics/decisions.hpp>

namespace frugal {

/// Share of labels that are predicted: NaN where no label counts. A label with a NaN logit is not
/// predicted.
///
/// Logits [B, C, ...] with labels [B, ...]: the largest logit decides, the first of equals. One
/// logit a label, [B, ...] with [B, ...] or [B, 1] with [B]: class 1 where it is above 0. Labels of
/// -100 are left out. MetricError with both shapes for anything else, and with the result for labels
/// that name no class; for a floating-point label other than 0, 1 and -100 in host memory at once.
class Accuracy {
 public:
  static constexpr std::string_view name = "accuracy";
  static constexpr bool whole_numbers = true;  // counts: exact in any order

  template <class B>
  void add(Loss const& loss, B const& batch) {
    detail::Decisions const all = detail::decisions_of(loss, batch, name);
    right_.add(all.predicted.eq(all.labels).sum());
    labels_.add(all.labels, all.classes);
  }
  template <class Sum>
  void reduce(Sum&& sum) {
    right_.reduce(sum);
    labels_.reduce(sum);
  }
  double result() const;
  template <class Archive>
  void persist(Archive& archive) {
    right_.persist(archive, "right");
    labels_.persist(archive);
  }

 private:
  detail::Tally right_;
  detail::LabelTally labels_;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/metrics/accuracy.ipp>
#endif
