// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>

#ifdef FRUGAL_CUDA

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <limits>

namespace frugal::detail {

/// A device's memory in LibTorch's caching allocator: what it holds and what it could still get.
/// Off a GPU nothing is known, except that an allocation fails.
class CudaMemory {
 public:
  explicit CudaMemory(c10::Device device, std::int64_t limit) : device_(device), limit_(limit) {}

  std::int64_t room() const { return room_; }
  void begin() {
    if (!device_.is_cuda()) return;
    c10::cuda::CUDAGuard const guard(device_);
    // Otherwise the cache that smaller steps filled would be attributed to this one.
    c10::cuda::CUDACachingAllocator::emptyCache();
    std::size_t free = 0;
    std::size_t total = 0;
    if (cudaMemGetInfo(&free, &total) == cudaSuccess) {
      room_ = static_cast<std::int64_t>(free) + stats().current;
      // The process may be limited to a fraction of the memory.
      double const share = c10::cuda::CUDACachingAllocator::getMemoryFraction(index());
      room_ = std::min(room_, static_cast<std::int64_t>(share * static_cast<double>(total)));
      if (limit_ > 0) room_ = std::min(room_, limit_);
    }
    c10::cuda::CUDACachingAllocator::resetPeakStats(index());
  }
  std::int64_t taken() const { return device_.is_cuda() ? stats().peak : 0; }
  void after_failure() const {
    if (device_.is_cuda()) c10::cuda::CUDACachingAllocator::emptyCache();
  }

 private:
  c10::DeviceIndex index() const {
    c10::cuda::CUDAGuard const guard(device_);
    return guard.current_device().index();
  }
  c10::CachingAllocator::Stat stats() const {
    // The first entry is the sum over all pools.
    return c10::cuda::CUDACachingAllocator::getDeviceStats(index()).reserved_bytes[0];
  }

  c10::Device device_;
  std::int64_t limit_;
  std::int64_t room_ = std::numeric_limits<std::int64_t>::max();
};

}  // namespace frugal::detail

#endif  // FRUGAL_CUDA

namespace frugal::detail {

/// Bytes of the tensors on a device, as its caching allocator counts them: no wait for the device.
/// Nothing for other devices than CUDA's.
std::optional<std::uint64_t> tensor_bytes([[maybe_unused]] c10::Device device);

/// The most of them since the last call of forget_tensor_peak, or another reset of LibTorch's peak.
std::optional<std::uint64_t> peak_tensor_bytes([[maybe_unused]] c10::Device device);
void forget_tensor_peak([[maybe_unused]] c10::Device device);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/libtorch/cuda_memory.ipp>
#endif
