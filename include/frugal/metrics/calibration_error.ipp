// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/metrics/calibration_error.hpp>

#include <frugal/inline.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace frugal::detail {

FRUGAL_INLINE void CalibrationBins::require(std::int64_t bins) const {
  if (!bins_.defined() || bins_.sum().size(1) == bins + 1) return;
  throw MetricError({.what = "CalibrationError has another number of bins than its checkpoint",
                     .where = "metric ece",
                     .why = "the checkpoint has counted in " +
                            std::to_string(bins_.sum().size(1) - 1) +
                            " bins, and CalibrationError::bins is " + std::to_string(bins),
                     .fix = "Set the number that the run began with, or begin a new run."});
}

FRUGAL_INLINE void CalibrationBins::add(at::Tensor const& output, at::Tensor const& target,
                                        std::int64_t bins, std::string_view metric) {
  if (bins < 1 || bins > 10000) {
    throw MetricError({.what = "CalibrationError has no such number of bins",
                       .where = "metric " + std::string(metric),
                       .why = "CalibrationError::bins is " + std::to_string(bins),
                       .fix = "Set it to 1 or more, and at most to 10000."});
  }
  Decisions const all = decisions_of(output, target, metric);
  classes_ = all.classes;
  at::Tensor const exact = at_least_float(output);
  bool const logits = are_logits(output, target) && !target.is_floating_point();
  at::Tensor const confidence_N =
      flattened(logits ? exact.softmax(1).amax(1) : exact.sigmoid()).contiguous();
  at::Tensor const inside_N = all.labels.ge(0).logical_and_(all.labels.lt(all.classes));
  at::Tensor const right_N = logits ? all.predicted.eq(all.labels) : all.labels.eq(1);
  // The index of the last edge that is not above the confidence.
  at::Tensor const edges = at::linspace(0, 1, bins + 1, confidence_N.options());
  at::Tensor const bin_N = at::bucketize(confidence_N, edges, /*out_int32=*/false, /*right=*/true)
                               .sub_(1)
                               .clamp_(0, bins);
  at::Tensor const counts_N = inside_N.to(at::kDouble);
  // Not by a product: a NaN of a label that is left out would stay.
  at::Tensor const own_N = at::where(inside_N, confidence_N.to(at::kDouble), 0.0);
  auto const sum = [&](at::Tensor const& each_N) {
    return at::zeros({bins + 1}, each_N.options()).scatter_add_(0, bin_N, each_N);
  };
  bins_.add(at::stack({sum(counts_N), sum(own_N), sum(counts_N * right_N)}));
  outside_.add(inside_N.logical_not().logical_and_(all.labels.ne(ignored_label)).sum());
}

FRUGAL_INLINE Metrics CalibrationBins::result(std::string_view metric) const {
  double const outside = outside_.value();
  if (outside != 0) refuse_labels(static_cast<std::int64_t>(outside), classes_, metric);
  Metrics found;
  found.set("ece", std::numeric_limits<double>::quiet_NaN());
  found.set("mce", std::numeric_limits<double>::quiet_NaN());
  at::Tensor const bins = bins_.on_host();
  if (!bins.defined()) return found;
  at::Tensor const counts = bins[0];
  double const labels = counts.sum().item<double>();
  if (labels == 0) return found;
  // Each bin's gap times its labels; an empty bin has none.
  at::Tensor const gaps = (bins[2] - bins[1]).abs();
  found.set("ece", gaps.sum().item<double>() / labels);
  found.set("mce", (gaps / counts.clamp_min(1)).max().item<double>());
  return found;
}

}  // namespace frugal::detail
