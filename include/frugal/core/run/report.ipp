// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/report.hpp>

#include <frugal/core/run/run_state.hpp>
#include <frugal/inline.hpp>

namespace frugal {

FRUGAL_INLINE int Report::exit_code() const {
  if (!unsaved.empty()) return 74;
  if (interrupted) return 130;
  return preempted ? 75 : 0;
}

FRUGAL_INLINE Metrics const& Report::last() const {
  if (validations.empty()) {
    throw MetricError({.what = "the run has no validation",
                       .where = "Report::last",
                       .why = "fit was given no validation data, or ended before the first",
                       .fix = "Call fit(train, valid)."});
  }
  return validations.back().metrics;
}

}  // namespace frugal
