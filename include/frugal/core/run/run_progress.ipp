// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/run_progress.hpp>

#include <frugal/inline.hpp>

#include <chrono>

namespace frugal {

FRUGAL_INLINE void RunProgress::add_window(WindowSize const& window, std::uint64_t position) {
  if (counters_.window_skipped == 0) {
    counters_.window_micro_batches = counters_.window_samples = counters_.window_tokens = 0;
  }
  counters_.window_micro_batches += window.micro_batches;
  counters_.window_samples += window.samples;
  counters_.window_tokens += window.tokens;
  counters_.position = position;
  counters_.sample += window.samples;
  counters_.token += window.tokens;
}

FRUGAL_INLINE void RunProgress::close_window(bool is_step) {
  counters_.window_skipped = is_step ? 0 : 1;
  ++(is_step ? counters_.step : counters_.non_finite_windows);
}

FRUGAL_INLINE void RunProgress::pass_over_window(std::uint64_t position) {
  counters_.position = position;
  ++counters_.skipped_windows;
}

FRUGAL_INLINE void RunProgress::end_epoch() {
  ++counters_.epoch;
  counters_.position = 0;
  epoch_begun_ = false;
}

FRUGAL_INLINE double RunProgress::seconds() const {
  std::chrono::duration<double> const spent = Clock::now() - began_;
  return seconds_before_ + spent.count();
}

FRUGAL_INLINE void RunProgress::resume_from(Resumed from, double seconds) {
  resumed_ = std::move(from);
  seconds_before_ = seconds;
  began_ = Clock::now();
}

}  // namespace frugal
