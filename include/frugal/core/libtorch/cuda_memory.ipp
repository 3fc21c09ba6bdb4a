// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/libtorch/cuda_memory.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE std::optional<std::uint64_t> tensor_bytes([[maybe_unused]] c10::Device device) {
#ifdef FRUGAL_CUDA
  if (device.is_cuda() && device.has_index()) {
    auto const stats = c10::cuda::CUDACachingAllocator::getDeviceStats(device.index());
    return static_cast<std::uint64_t>(stats.allocated_bytes[0].current);
  }
#endif
  return {};
}

FRUGAL_INLINE std::optional<std::uint64_t> peak_tensor_bytes([[maybe_unused]] c10::Device device) {
#ifdef FRUGAL_CUDA
  if (device.is_cuda() && device.has_index()) {
    auto const stats = c10::cuda::CUDACachingAllocator::getDeviceStats(device.index());
    return static_cast<std::uint64_t>(stats.allocated_bytes[0].peak);
  }
#endif
  return {};
}

FRUGAL_INLINE void forget_tensor_peak([[maybe_unused]] c10::Device device) {
#ifdef FRUGAL_CUDA
  // A run that begins elsewhere (StartOn) may come before any tensor there.
  if (device.is_cuda() && device.has_index() &&
      c10::cuda::CUDACachingAllocator::get()->initialized())
    c10::cuda::CUDACachingAllocator::resetPeakStats(device.index());
#endif
}

}  // namespace frugal::detail
