// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, C classes, N labels, ... whatever one sample has.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string_view>

#include <frugal/core/run/metrics.hpp>
#include <frugal/core/run/objective.hpp>
#include <frugal/metrics/decisions.hpp>

namespace frugal {

namespace detail {

/// Per bin of confidence: how many labels, the sum of their confidences, and how many are right.
class CalibrationBins {
 public:
  void add(at::Tensor const& output, at::Tensor const& target, std::int64_t bins,
           std::string_view metric);
  Metrics result(std::string_view metric) const;

  template <class Sum>
  void reduce(Sum&& sum) {
    bins_.reduce(sum);
    outside_.reduce(sum);
  }
  template <class Archive>
  void persist(Archive& archive) {
    archive("classes", classes_);
    bins_.persist(archive, "bins");
    outside_.persist(archive, "outside");
  }
  /// MetricError for a checkpoint that has counted in another number of bins.
  void require(std::int64_t bins) const;

 private:
  std::int64_t classes_ = 0;
  TensorTally bins_;  ///< [3, bins + 1]
  Tally outside_;
};

}  // namespace detail

/// Expected and maximum calibration error: "ece", the mean over all labels of |accuracy - confidence| of their bin of
/// confidence, and "mce", the largest of a bin. Values are those of torchmetrics with norm "l1" and "max".
///
/// Logits [B, C, ...] with labels [B, ...]: the confidence is the largest probability of the softmax, and right is
/// the class that has it. One logit per label, [B, ...] with [B, ...] or [B, 1] with [B]: the confidence is the
/// probability of class 1, the sigmoid, and right is label 1, as in torchmetrics' BinaryCalibrationError; logits
/// [B, 2, ...] give another number. Bins are [0, 1/15), [1/15, 2/15) and so on; a confidence of exactly 1 has a bin of
/// its own, as in torchmetrics. An empty bin counts 0.
///
/// Logits of 16 bits are widened; sums are in double precision, whose last bits may differ from run to run on CUDA. Labels of -100 are left out. NaN if no label counts,
/// or a label that counts has a NaN logit. MetricError for other shapes, and for labels that name no class.
template <int Bins = 15>
struct CalibrationError {
  static_assert(
      Bins >= 1 && Bins <= 10000,
      "frugal: CalibrationError<Bins>: Bins is from 1 to 10000. Write CalibrationError<15>.");

  static constexpr std::string_view name = "ece";

  int bins = Bins;                   ///< 1 to 10000, or MetricError
  detail::CalibrationBins counts{};  ///< what it has seen

  void each_option(auto&& visit) { visit("bins", bins, "of confidence, 1 to 10000"); }

  template <class B>
  void add(Loss const& loss, B const& batch) {
    counts.add(detail::output_of(loss, name), detail::target_of(batch), bins, name);
  }
  template <class Sum>
  void reduce(Sum&& sum) {
    counts.reduce(sum);
  }
  Metrics result() const { return counts.result(name); }
  template <class Archive>
  void persist(Archive& archive) {
    counts.persist(archive);
    counts.require(bins);
  }
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/metrics/calibration_error.ipp>
#endif
