// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/checkpoint_interval.hpp>
#include <frugal/report/plan/money.hpp>

#include <optional>

namespace frugal::plan {

/// A run on machines that may be taken away. All devices stop when one of them is taken.
struct SpotInputs {
  double hours = 0;  ///< of work, without checkpoints and interruptions
  double devices = 1;
  PricePerDevice on_demand{};
  PricePerDevice spot{};
  double preemptions_per_hour = 0;    ///< of the whole job
  Seconds save{};                     ///< that one checkpoint stops the steps
  Seconds restart{};                  ///< from a preemption to the next step, while the bill runs
  std::optional<Seconds> interval{};  ///< of work between two checkpoints; Daly's if not given
  bool notice = false;                ///< Spot saves within the notice: no work is lost
  /// The devices that are paid for on demand and on spot, `devices` if not given: a price per node
  /// bills whole nodes (Price::billed), and the two prices need not be listed alike.
  std::optional<double> billed{};
  std::optional<double> spot_billed{};
};

struct SpotEstimate {
  Seconds interval{};      ///< between two checkpoints
  double hours = 0;        ///< expected; infinite where restarts leave no time to work
  double preemptions = 0;  ///< expected
  double lost_hours = 0;   ///< of `hours`: work done again, restarts and saves at a notice
  double save_hours = 0;   ///< of `hours`: checkpoints at their cadence
  Usd cost{};
  Usd on_demand{};  ///< the cost of the same work on demand, with checkpoints at `interval`, or
                    ///< else one at the end: nothing makes such a run save more often
  double saved_share() const { return 1 - cost / on_demand; }
};

SpotEstimate estimate(SpotInputs const& in);

/// Preemptions per hour above which spot costs more than on demand. Infinite for a price of 0, and
/// 0 if spot is never cheaper. By bisection: the cost grows with the rate.
double break_even_rate(SpotInputs in);

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
#include <frugal/report/plan/spot_cost.ipp>
#endif
