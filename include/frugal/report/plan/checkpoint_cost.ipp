// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/plan/checkpoint_cost.hpp>

#include <frugal/inline.hpp>
#include <frugal/report/plan/require.hpp>

namespace frugal::plan {

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
