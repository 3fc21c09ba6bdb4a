// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <frugal/report/profile/trace.hpp>

namespace frugal::watch {

/// What limits a step.
enum class Bound : unsigned char { input, compute, launch, host };

std::string_view name_of(Bound bound);

/// The step time of a window, divided; shares of it, 0 to 1, which add up to 1.
struct Division {
  std::uint64_t step_time = 0;  ///< nanoseconds of the window, without validations
  double busy = 0;              ///< the device works; on the CPU: an operator of the step runs
  double data = 0;              ///< the device is idle, and the host reads data
  double launch = 0;  ///< the device is idle, and the host is in an operator that feeds it
  double host = 0;    ///< the device is idle, and the host does something else
  double idle() const { return 1 - busy; }
  /// Share of the operators' self time in operators whose calls are short; on the CPU.
  double short_calls = 0;
  double policies = 0;  ///< share of the step that the policies' own work takes, saves included
};

/// The window's time without validations, which are no part of a step.
Spans training_of(Trace const& trace);

/// Divides the step time of a trace whose events are all of training.
Division divide(Trace const& trace, Spans const& training);

/// Shares from which the verdict is input, compute, and, of a busy CPU, launch.
inline constexpr double input_from = 0.3;
inline constexpr double compute_from = 0.5;
inline constexpr double short_calls_from = 0.5;

/// Reading data counts first, because reading ahead removes its share whole and changes nothing
/// else; then work, then whichever keeps the device waiting longer.
Bound judge(Division const& step, bool on_accelerator);

/// "37%".
std::string percent(double share);

/// What to do, with the policy and its page.
std::string advice_for(Bound bound, Division const& step, bool on_accelerator);

}  // namespace frugal::watch

#ifndef FRUGAL_COMPILED
#include <frugal/report/profile/bound.ipp>
#endif
