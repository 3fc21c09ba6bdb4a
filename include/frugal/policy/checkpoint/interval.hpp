// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>

#include <frugal/base/wall_clock.hpp>
#include <frugal/checkpoint/checkpoint_interval.hpp>
#include <frugal/core/run/counters.hpp>

namespace frugal::detail {

/// The measured cost of one checkpoint, in seconds.
struct SaveCost {
  double stall = 0;  ///< of the step: all of the save, or the copy where a thread writes
  double write = 0;  ///< of the thread that writes, or 0
};

/// Seconds between two checkpoints of `Every<Auto>`.
///
/// Without a lifetime of the machine, as short as keeps the stalls under `share` of the time. A
/// thread that writes gets at most a tenth of the time: it takes cores and the disk from the step.
double automatic_interval(SaveCost cost, double share, std::optional<double> lifetime);

/// When the next checkpoint is due, after an optimizer step or at the end of an epoch.
///
/// Otherwise a step costs a comparison of `step` with next_look(). Cadences in wall time read the
/// clock about twice a second, and measure how many steps that is.
template <class Cadence>
class Interval {
  using Clock = WallClock;

 public:
  static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();
  static constexpr bool automatic = std::same_as<typename Cadence::unit, Automatic>;
  static constexpr bool timed = automatic || std::same_as<typename Cadence::unit, Second>;
  static constexpr bool by_steps = std::same_as<typename Cadence::unit, OptimizerStep>;
  /// In micro-batches, samples or tokens: the caller must check these after every step.
  static constexpr bool by_counts = !timed && !by_steps && !Cadence::per_epoch;

  /// `every`: its multiples are due too, whatever the cadence; 0: none.
  Interval(Cadence const& cadence, double share, std::optional<double> lifetime,
           std::uint64_t every = 0)
      : cadence_(cadence), share_(share), lifetime_(lifetime), every_(every) {}

  void begin(Counters const& now, Clock::time_point time) {
    looked_at_ = now.step;
    looked_ = saved_ = time;
    next_look_ = now.step + 1;
    plan(now);
  }

  /// The step at which look() wants to be called next.
  std::uint64_t next_look() const { return next_look_; }

  /// Whether a checkpoint is due after the step that `now` has counted.
  bool look(Counters const& now, Clock::time_point time) {
    measure_steps(now, time);
    bool due = false;
    if constexpr (by_steps) {
      due = now.step >= next_save_;
    } else if constexpr (timed) {
      due = std::chrono::duration<double>(time - saved_).count() >= seconds();
    } else if constexpr (by_counts) {
      due = cadence_.due_at_step(now);
    }
    plan(now);
    return due || is_kept(now);
  }

  /// Whether a checkpoint of this step is kept for ever.
  bool is_kept(Counters const& now) const {
    return every_ != 0 && now.step != 0 && now.step % every_ == 0;
  }

  void saved(SaveCost cost, Clock::time_point time) {
    cost_ = cost;
    saved_ = time;
  }

  /// The cadence in seconds of wall time.
  double seconds() const {
    if constexpr (automatic) {
      return automatic_interval(cost_, share_, lifetime_);
    } else if constexpr (timed) {
      return static_cast<double>(cadence_.count());
    } else {
      return 0;
    }
  }

 private:
  static constexpr double look_seconds = 0.5;

  // Steps until the next look at the clock; at most doubled each time, so that one step that was
  // fast by chance does not blind it for long.
  void measure_steps(Counters const& now, Clock::time_point time) {
    std::uint64_t const steps = now.step - looked_at_;
    double const spent = std::chrono::duration<double>(time - looked_).count();
    if (steps != 0) {
      double const wanted = spent > 0 ? static_cast<double>(steps) * look_seconds / spent
                                      : static_cast<double>(steps) * 2;
      stride_ = static_cast<std::uint64_t>(
          std::clamp(wanted, 1.0, static_cast<double>(std::max<std::uint64_t>(stride_, 1)) * 2));
    }
    looked_at_ = now.step;
    looked_ = time;
  }

  void plan(Counters const& now) {
    next_look_ = now.step + std::max<std::uint64_t>(stride_, 1);
    if constexpr (by_steps) {
      next_save_ = (now.step / cadence_.count() + 1) * cadence_.count();
      next_look_ = std::min(next_look_, next_save_);
    }
    if (every_ != 0) next_look_ = std::min(next_look_, (now.step / every_ + 1) * every_);
  }

  [[no_unique_address]] Cadence cadence_;
  double share_;
  std::optional<double> lifetime_;
  std::uint64_t every_;
  SaveCost cost_{};
  Clock::time_point looked_{};
  Clock::time_point saved_{};
  std::uint64_t looked_at_ = 0;
  std::uint64_t stride_ = 1;
  std::uint64_t next_look_ = 0;
  std::uint64_t next_save_ = 0;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/policy/checkpoint/interval.ipp>
#endif
