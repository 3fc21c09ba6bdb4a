// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/report.hpp>

#include <frugal/base/memory.hpp>
#include <frugal/core/libtorch/cuda_memory.hpp>
#include <frugal/core/run/run_state.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE MemoryMeter::MemoryMeter(c10::Device device)
    : device_(device),
      resident_(watch::resident_bytes()),
      peak_before_(watch::peak_resident_bytes()) {
  forget_tensor_peak(device_);
}

FRUGAL_INLINE MemoryPeaks MemoryMeter::read() const {
  MemoryPeaks peaks{.process = watch::peak_resident_bytes(), .device = peak_tensor_bytes(device_)};
  if (peaks.process && peak_before_ && resident_ && *peaks.process > *peak_before_ &&
      *peaks.process > *resident_) {
    peaks.growth = *peaks.process - *resident_;
  }
  return peaks;
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE int Report::exit_code() const {
  if (!unsaved.empty()) return 74;
  if (interrupted) return 130;
  return preempted ? 75 : 0;
}

FRUGAL_INLINE Metrics const& Report::last() const {
  if (validations.empty()) {
    throw MetricError({.what = "the run has no validation",
                       .where = "Report::last",
                       .why = "fit was given no validation data, or ended before the first",
                       .fix = "Call fit(train, valid)."});
  }
  return validations.back().metrics;
}

}  // namespace frugal
