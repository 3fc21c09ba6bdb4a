// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include <frugal/policy/step_pace.hpp>

namespace frugal::detail {

/// The pace of a run from one redraw to the next: samples per second, time left, and the share of
/// the time in which the run waited for data.
class Pace {
 public:
  using clock = std::chrono::steady_clock;

  void begin(clock::time_point now) { begin_ = last_ = now; }

  /// Whether the first steps are known, from which the rest is counted.
  bool knows_first() const { return first_step_.has_value(); }
  void first(std::uint64_t step, std::uint64_t sample);
  std::uint64_t steps_since_first(std::uint64_t step) const {
    return first_step_ && step > *first_step_ ? step - *first_step_ : 0;
  }

  /// `waited` is seconds that the run has waited for data so far, if that is measured.
  void update(clock::time_point now, std::uint64_t step, std::uint64_t sample,
              std::optional<double> waited);

  double samples_per_second() const { return rate_; }
  std::optional<double> data_wait() const { return data_wait_; }
  std::optional<double> seconds_left(std::uint64_t step,
                                     std::optional<std::uint64_t> total_steps) const {
    return steps_.seconds_left(total_steps, step);
  }
  double seconds_since_begin(clock::time_point now) const {
    return std::chrono::duration<double>(now - begin_).count();
  }

 private:
  clock::time_point begin_{}, last_{};
  std::optional<std::uint64_t> first_step_;  ///< the step before the first of this fit
  std::uint64_t last_sample_ = 0;
  double rate_ = 0;
  StepPace steps_;
  std::optional<double> waited_;
  std::optional<double> data_wait_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/report/progress/pace.ipp>
#endif
