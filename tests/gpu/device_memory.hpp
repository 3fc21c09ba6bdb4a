// SPDX-License-Identifier: Apache-2.0
// What LibTorch's allocator holds on the first GPU, and how much it may take there.
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

/// The allocator knows a device once CUDA has been started, which a first tensor does elsewhere.
inline c10::CachingDeviceAllocator::DeviceStats stats() {
  at::globalContext().lazyInitDevice(c10::kCUDA);
  return c10::cuda::CUDACachingAllocator::getDeviceStats(gpu);
}

/// Bytes of tensors that live now. The first of the kinds is the sum of all pools.
inline std::int64_t allocated() { return stats().allocated_bytes[0].current; }

/// The most bytes that tensors took while `body` ran, above those that lived before.
template <class Body>
std::int64_t peak_of(Body&& body) {
  c10::cuda::device_synchronize();
  std::int64_t const before = allocated();
  c10::cuda::CUDACachingAllocator::resetPeakStats(gpu);
  body();
  c10::cuda::device_synchronize();
  return stats().allocated_bytes[0].peak - before;
}

/// The allocator may take so many bytes of the device from its driver, for the span of this.
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
