// SPDX-License-Identifier: Apache-2.0
// The memory that LibTorch's allocator holds on the first GPU, and its limit there.
#pragma once

#include <ATen/Context.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>

namespace frugal_test::device_memory {

inline constexpr std::int64_t mib = std::int64_t{1} << 20;
inline constexpr c10::DeviceIndex gpu = 0;

/// The allocator knows a device once CUDA is initialised, which elsewhere the first tensor does.
inline c10::CachingDeviceAllocator::DeviceStats stats() {
  at::globalContext().lazyInitDevice(c10::kCUDA);
  return c10::cuda::CUDACachingAllocator::getDeviceStats(gpu);
}

/// Bytes of live tensors. The first entry is the sum over all pools.
inline std::int64_t allocated() { return stats().allocated_bytes[0].current; }

/// The peak of tensor bytes while `body` ran, above those that were live before.
template <class Body>
std::int64_t peak_of(Body&& body) {
  c10::cuda::device_synchronize();
  std::int64_t const before = allocated();
  c10::cuda::CUDACachingAllocator::resetPeakStats(gpu);
  body();
  c10::cuda::device_synchronize();
  return stats().allocated_bytes[0].peak - before;
}

/// Limits the allocator's memory on the device to this many bytes, for a scope.
class Limit {
 public:
  explicit Limit(std::int64_t bytes) {
    stats();
    c10::cuda::CUDACachingAllocator::emptyCache();
    std::size_t free = 0;
    std::size_t total = 0;
    if (cudaMemGetInfo(&free, &total) != cudaSuccess) throw std::runtime_error("cudaMemGetInfo");
    c10::cuda::CUDACachingAllocator::setMemoryFraction(
        static_cast<double>(bytes) / static_cast<double>(total), gpu);
  }
  Limit(Limit const&) = delete;
  Limit& operator=(Limit const&) = delete;
  ~Limit() { c10::cuda::CUDACachingAllocator::setMemoryFraction(1.0, gpu); }
};

}  // namespace frugal_test::device_memory
