// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <optional>
#include <string>

#include <frugal/base/number_text.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal {

/// The value of a validation metric that a comparison trains to. Without a metric there is none,
/// and every run goes to the end of its settings.
struct TargetMetric {
  std::string metric{};              ///< as validation names it: "accuracy", "loss"
  std::optional<double> at_least{};  ///< one of the two
  std::optional<double> at_most{};
  bool stop = true;  ///< end a run at its target; false: note the moment and train on

  bool given() const { return !metric.empty() || at_least || at_most; }
  bool reached(double value) const { return at_least ? value >= *at_least : value <= *at_most; }

  /// "accuracy >= 0.8"
  FRUGAL_INLINE std::string text() const {
    return metric + (at_least ? " >= " : " <= ") +
           detail::general(at_least ? *at_least : at_most.value_or(0), 6);
  }

  /// SettingsError for a target without a metric, without a bound, with two, or with one that no
  /// value can be compared with.
  FRUGAL_INLINE void require() const {
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
};

}  // namespace frugal
