// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/libtorch/cuda_uuids.hpp>

#include <frugal/inline.hpp>

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAFunctions.h>

#include <cstring>

namespace frugal::detail {

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
