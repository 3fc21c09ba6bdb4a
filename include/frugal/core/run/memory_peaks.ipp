// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/memory_peaks.hpp>

#include <frugal/base/memory.hpp>
#include <frugal/core/libtorch/cuda_memory.hpp>
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
