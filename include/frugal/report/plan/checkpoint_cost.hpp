// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/checkpoint_interval.hpp>
#include <frugal/inline.hpp>
#include <frugal/report/plan/money.hpp>
#include <frugal/report/plan/require.hpp>

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

FRUGAL_INLINE CheckpointEstimate estimate(CheckpointInputs const& in) {
  detail::require_positive("seconds of a save", in.save.value());
  detail::require_positive("lifetime", in.lifetime.value());
  detail::require_not_negative("restart", in.restart.value());
  detail::require_not_negative("work", in.hours);
  double const save = in.save.value(), lifetime = in.lifetime.value();
  CheckpointEstimate out;
  out.young = Seconds(young_interval(save, lifetime));
  out.daly = Seconds(daly_interval(save, lifetime));
  // The times are proportional to the work, so that an hour tells the share.
  double const interval = out.daly.value();
  double const calm = expected_time(3600, interval, save, {}) / 3600;
  double const all =
      expected_time(3600, interval, save, {.lifetime = lifetime, .restart = in.restart.value()}) /
      3600;
  out.overhead = all - 1;
  out.hours = all * in.hours;
  out.save_hours = (calm - 1) * in.hours;
  out.lost_hours = (all - calm) * in.hours;
  return out;
}

}  // namespace frugal::plan
