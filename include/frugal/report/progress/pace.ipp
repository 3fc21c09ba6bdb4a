// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/progress/pace.hpp>

#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE void Pace::first(std::uint64_t step, std::uint64_t sample) {
  first_step_ = step;
  last_sample_ = sample;
}

FRUGAL_INLINE void Pace::update(clock::time_point now, std::uint64_t step, std::uint64_t sample,
                                std::optional<double> waited) {
  double const seconds = std::chrono::duration<double>(now - last_).count();
  if (seconds > 0 && sample > last_sample_) {
    double const rate = static_cast<double>(sample - last_sample_) / seconds;
    // An exponential mean keeps the rate readable and follows a change in a few redraws.
    rate_ = rate_ == 0 ? rate : 0.7 * rate_ + 0.3 * rate;
  }
  steps_.step(step, seconds_since_begin(now));
  if (waited && waited_ && seconds > 0) {
    data_wait_ = std::clamp((*waited - *waited_) / seconds, 0.0, 1.0);
  }
  waited_ = waited;
  last_ = now;
  last_sample_ = sample;
}

}  // namespace frugal::detail
