// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace frugal::detail {

/// Seconds per step in this process, from the end of its first step, which also sets up memory and
/// kernels. Validations and saves are included: a run waits and pays for them.
class StepPace {
 public:
  /// After some step: `count` steps are made, and it is `now` on any clock of seconds. Where a
  /// Rollback has gone back since the last call, neither steps nor time since then count.
  void step(std::uint64_t count, double now);

  /// The steps that the pace is the mean of.
  std::uint64_t steps() const { return steps_; }
  /// Until `total` steps are made; nothing before there is a pace.
  std::optional<double> seconds_left(std::optional<std::uint64_t> total, std::uint64_t done) const;

 private:
  struct Mark {
    std::uint64_t count;
    double at;
  };
  std::optional<Mark> last_;
  double seconds_ = 0;
  std::uint64_t steps_ = 0;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/policy/step_pace.ipp>
#endif
