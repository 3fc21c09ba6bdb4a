// SPDX-License-Identifier: Apache-2.0
#pragma once

#ifdef FRUGAL_CUDA
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAFunctions.h>

#include <cstring>
#endif

#include <array>
#include <vector>

#include <frugal/inline.hpp>

namespace frugal::detail {

/// The UUIDs of this process's GPUs, in CUDA's order. That is the order of neither NVML nor the bus
/// unless CUDA_DEVICE_ORDER says so, and CUDA_VISIBLE_DEVICES may abbreviate UUIDs: only these name
/// a device in both. Empty in a build without CUDA.
FRUGAL_INLINE std::vector<std::array<unsigned char, 16>> cuda_uuids() {
  std::vector<std::array<unsigned char, 16>> uuids;
#ifdef FRUGAL_CUDA
  for (c10::DeviceIndex i = 0; i < c10::cuda::device_count(); ++i) {
    auto const& uuid = at::cuda::getDeviceProperties(i)->uuid;
    static_assert(sizeof uuid.bytes == sizeof uuids[0]);
    std::memcpy(uuids.emplace_back().data(), uuid.bytes, sizeof uuid.bytes);
  }
#endif
  return uuids;
}

}  // namespace frugal::detail
