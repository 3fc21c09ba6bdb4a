// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

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
  std::string text() const;

  /// SettingsError for a target without a metric, without a bound, with two, or with one that no
  /// value can be compared with.
  void require() const;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/report/compare/target_metric.ipp>
#endif
