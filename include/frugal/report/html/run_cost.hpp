// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/html/run_log.hpp>

#include <cmath>
#include <cstddef>
#include <optional>

namespace frugal::html {

/// Dollars per second of training, if the run knows its price in dollars: that of all its devices.
std::optional<double> dollars_per_second(RunLog const& log);

/// The cost of the run: that of its last "cost" line, or else the last value of the gauge.
std::optional<double> dollars_of(RunLog const& log);

/// Seconds that the run took, with those that it repeated, if its log has them.
double paid_seconds(RunLog const& log);

/// Training that was repeated because a process had died.
struct Lost {
  std::size_t times = 0;
  double seconds = 0;
  std::optional<double> dollars{};
};
Lost lost_by(RunLog const& log);

}  // namespace frugal::html

#ifndef FRUGAL_COMPILED
#include <frugal/report/html/run_cost.ipp>
#endif
