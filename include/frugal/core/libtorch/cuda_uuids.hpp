// SPDX-License-Identifier: Apache-2.0
#pragma once

#ifdef FRUGAL_CUDA

#endif

#include <array>
#include <vector>

namespace frugal::detail {

/// The UUIDs of this process's GPUs, in CUDA's order. That is the order of neither NVML nor the bus
/// unless CUDA_DEVICE_ORDER says so, and CUDA_VISIBLE_DEVICES may abbreviate UUIDs: only these name
/// a device in both. Empty in a build without CUDA.
std::vector<std::array<unsigned char, 16>> cuda_uuids();

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/libtorch/cuda_uuids.ipp>
#endif
