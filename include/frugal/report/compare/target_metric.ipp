// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/compare/target_metric.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <cmath>

namespace frugal {

FRUGAL_INLINE std::string TargetMetric::text() const {
  return metric + (at_least ? " >= " : " <= ") +
         detail::general(at_least ? *at_least : at_most.value_or(0), 6);
}

FRUGAL_INLINE void TargetMetric::require() const {
  if (!given()) return;
  if (metric.empty()) {
    throw SettingsError({.what = "the target names no metric",
                         .where = "TargetMetric::metric",
                         .why = "there is nothing to compare with the bound",
                         .fix = "Name a metric of Validate, such as \"accuracy\", or \"loss\"."});
  }
  if (at_least.has_value() == at_most.has_value()) {
    throw SettingsError(
        {.what = std::string("the target has ") + (at_least ? "two bounds" : "no bound"),
         .where = "TargetMetric of " + metric,
         .why = "a target is reached at one bound",
         .fix = "Set at_least for a metric that grows, or at_most for a loss."});
  }
  if (!std::isfinite(at_least ? *at_least : *at_most)) {
    throw SettingsError({.what = "the bound is not a finite number",
                         .where = "TargetMetric of " + metric,
                         .why = "no run reaches it, or every one does",
                         .fix = "Give a finite number."});
  }
}

}  // namespace frugal
