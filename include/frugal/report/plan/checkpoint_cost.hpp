// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/checkpoint_interval.hpp>
#include <frugal/report/plan/money.hpp>

namespace frugal::plan {

/// A job that is interrupted without notice, and what it does against that.
struct CheckpointInputs {
  Seconds save{};        ///< that one checkpoint stops the steps
  Seconds lifetime{};    ///< of the job: mean time between two interruptions of any machine
  Seconds restart{300};  ///< from an interruption to the next step
  double hours = 0;      ///< of work; 0: not known, and so are the hours that it takes
};

struct CheckpointEstimate {
  Seconds young{};        ///< interval by Young
  Seconds daly{};         ///< interval by Daly
  double overhead = 0;    ///< share of the work that checkpoints and interruptions add
  double hours = 0;       ///< expected, at Daly's interval
  double save_hours = 0;  ///< of `hours`, in checkpoints
  double lost_hours = 0;  ///< of `hours`: work done again, and restarts
};

CheckpointEstimate estimate(CheckpointInputs const& in);

}  // namespace frugal::plan

#ifndef FRUGAL_COMPILED
#include <frugal/report/plan/checkpoint_cost.ipp>
#endif
