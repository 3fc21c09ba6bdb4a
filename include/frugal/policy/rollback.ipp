// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/rollback.hpp>

#include <frugal/inline.hpp>

#include <algorithm>
#include <cmath>

namespace frugal::detail {

FRUGAL_INLINE void LossMean::add(double loss) {
  ++count_;
  double const share = std::max(0.02, 1.0 / static_cast<double>(count_));
  value_ += (loss - value_) * share;
  magnitude_ += (std::abs(loss) - magnitude_) * share;
}

FRUGAL_INLINE bool BadWindows::has(std::uint64_t epoch, std::uint64_t position) const {
  Place const here{epoch, position};
  return std::find(places_.begin(), places_.end(), here) != places_.end() || suspect_ == here;
}

FRUGAL_INLINE void BadWindows::search(LossError::Window const& at, std::uint64_t until) {
  until_ = until;
  bool const known = at.position != LossError::Window::elsewhere;
  suspect_ = known ? Place{at.epoch, at.position} : nobody;
}

FRUGAL_INLINE void BadWindows::found(LossError::Window const& at) {
  suspect_ = nobody;
  until_ = nothing;
  add(at.epoch, at.position);
}

FRUGAL_INLINE void BadWindows::cleared(std::uint64_t step) {
  if (step < until_) return;
  if (suspect_ != nobody) places_.push_back(suspect_);
  suspect_ = nobody;
  until_ = nothing;
}

}  // namespace frugal::detail
