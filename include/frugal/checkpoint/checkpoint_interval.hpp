// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>

/// Seconds throughout, of wall time.
namespace frugal::plan {

/// Time between two checkpoints that loses the least where machines vanish, for a checkpoint that
/// stops the step for `cost` and a machine that lives `lifetime` on average: sqrt(2 cost lifetime).
///
/// Source  J. W. Young, "A first order approximation to the optimum checkpoint interval", CACM 17
///         (1974).
inline double young_interval(double cost, double lifetime) {
  return std::sqrt(2 * cost * lifetime);
}

/// Daly's interval of higher order, which also holds for a cost near the lifetime. For cost <<
/// lifetime it is Young's, less the cost itself.
///
/// Source  J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart
///         dumps", Future Generation Computer Systems 22 (2006), equation 37.
double daly_interval(double cost, double lifetime);

/// A machine that vanishes without notice, at times that do not depend on each other.
struct Failures {
  double lifetime = std::numeric_limits<double>::infinity();  ///< mean time between two
  double restart = 0;  ///< from a failure to the first step: a machine, start, load
};

/// Expected wall time of `work` with a checkpoint of `cost` after every `interval` of work: lost
/// work, checkpoints and restarts included.
///
/// Source  Daly (2006), section 3, for exponentially distributed failures, which also hit
///         checkpoints and restarts.
double expected_time(double work, double interval, double cost, Failures const& failures);

}  // namespace frugal::plan

#ifndef FRUGAL_COMPILED
#include <frugal/checkpoint/checkpoint_interval.ipp>
#endif
