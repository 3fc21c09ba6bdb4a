// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>

namespace frugal {

/// The most memory that a fit has taken, in bytes.
struct MemoryPeaks {
  /// Most resident bytes of the process in its life so far, as the kernel counts them (VmHWM): also
  /// what no fit has taken.
  std::optional<std::uint64_t> process{};
  /// `process`, less what was resident when this fit began, with the module on its device. Nothing
  /// if the process had its peak before this fit, which hides the fit's own.
  std::optional<std::uint64_t> growth{};
  /// Most bytes of tensors on the GPU in Settings::device, as LibTorch's caching allocator counts
  /// them: since this fit began, those of other fits and of the program included. AutoBatch's
  /// search begins the count again. Nothing without a GPU.
  std::optional<std::uint64_t> device{};
};

namespace detail {

/// Measures them; made when the module is on its device.
class MemoryMeter {
 public:
  explicit MemoryMeter(c10::Device device);

  MemoryPeaks read() const;

 private:
  c10::Device device_;
  std::optional<std::uint64_t> resident_, peak_before_;
};

}  // namespace detail
}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/memory_peaks.ipp>
#endif
