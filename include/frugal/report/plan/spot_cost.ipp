// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/plan/spot_cost.hpp>

#include <frugal/checkpoint/checkpoint_interval.hpp>
#include <frugal/inline.hpp>
#include <frugal/report/plan/require.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace frugal::plan {

FRUGAL_INLINE SpotEstimate estimate(SpotInputs const& in) {
  detail::require_positive("hours", in.hours);
  detail::require_positive("devices", in.devices);
  detail::require_positive("on-demand price", in.on_demand.value());
  detail::require_not_negative("spot price", in.spot.value());
  detail::require_not_negative("preemptions per hour", in.preemptions_per_hour);
  detail::require_positive("billed devices", in.billed.value_or(in.devices));
  detail::require_positive("devices billed on spot", in.spot_billed.value_or(in.devices));
  detail::require_not_negative("save", in.save.value());
  detail::require_not_negative("restart", in.restart.value());
  double const work = in.hours * 3600;
  double const save = in.save.value();
  Failures const failures{.lifetime = in.preemptions_per_hour > 0
                                          ? 3600 / in.preemptions_per_hour
                                          : std::numeric_limits<double>::infinity(),
                          .restart = in.restart.value()};
  // Without a cost or without failures Daly's interval is 0 or infinite: take what loses nothing.
  double interval = work;
  if (in.interval) {
    detail::require_positive("interval", in.interval->value());
    interval = std::min(in.interval->value(), work);
  } else if (!std::isinf(failures.lifetime)) {
    interval = std::clamp(daly_interval(save, failures.lifetime), std::min(1.0, work), work);
  }
  double const undisturbed = expected_time(work, interval, save, {});
  double time = undisturbed;
  if (in.notice && !std::isinf(failures.lifetime)) {
    double const kept = 1 - (save + failures.restart) / failures.lifetime;
    time = kept > 0 ? undisturbed / kept : std::numeric_limits<double>::infinity();
  } else if (!in.notice) {
    time = expected_time(work, interval, save, failures);
  }
  SpotEstimate out;
  out.interval = Seconds(interval);
  out.hours = time / 3600;
  out.preemptions = std::isinf(failures.lifetime) ? 0 : time / failures.lifetime;
  out.save_hours = (undisturbed - work) / 3600;
  out.lost_hours = (time - undisturbed) / 3600;
  out.cost = in.spot * DeviceHours(in.spot_billed.value_or(in.devices) * out.hours);
  double const calm = expected_time(work, in.interval ? interval : work, save, {});
  out.on_demand = in.on_demand * DeviceHours(in.billed.value_or(in.devices) * calm / 3600);
  return out;
}

FRUGAL_INLINE double break_even_rate(SpotInputs in) {
  if (in.spot.value() == 0) return std::numeric_limits<double>::infinity();
  auto const dearer = [&in](double rate) {
    in.preemptions_per_hour = rate;
    SpotEstimate const got = estimate(in);
    return !(got.cost < got.on_demand);
  };
  if (dearer(0)) return 0;
  double low = 0, high = 1e-6;
  while (!dearer(high) && high < 1e9) low = std::exchange(high, high * 2);
  // A restart and a save that take no time: with checkpoints a second apart, the shortest interval,
  // a preemption undoes so little that no rate makes spot dearer.
  if (high >= 1e9) return std::numeric_limits<double>::infinity();
  for (int i = 0; i < 60; ++i) {
    double const middle = (low + high) / 2;
    (dearer(middle) ? high : low) = middle;
  }
  return low;
}

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
