// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/step_pace.hpp>

#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE void StepPace::step(std::uint64_t count, double now) {
  if (last_ && count == last_->count) return;
  if (last_ && count > last_->count) {
    steps_ += count - last_->count;
    seconds_ += now - last_->at;
  }
  last_ = Mark{count, now};
}

FRUGAL_INLINE std::optional<double> StepPace::seconds_left(std::optional<std::uint64_t> total,
                                                           std::uint64_t done) const {
  if (!total || steps_ == 0) return {};
  if (done >= *total) return 0;
  return static_cast<double>(*total - done) * seconds_ / static_cast<double>(steps_);
}

}  // namespace frugal::detail
