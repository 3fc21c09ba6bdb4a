// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Device.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <optional>

#include <frugal/core/libtorch/cuda_memory.hpp>  // IWYU pragma: keep
#include <frugal/core/libtorch/host_meter.hpp>
#include <frugal/error.hpp>

namespace frugal::detail {

/// The peak of a trial's tensor bytes: weights, gradients, the optimizer's state, activations,
/// batches. The resident size of the process would be that of all recipes so far.
class PeakMemory {
 public:
  /// Call before the module is made.
  PeakMemory() {
    try {
      HostMeter::install();
      host_ = true;
      HostMeter::forget_peak();
      live_ = HostMeter::live();
    } catch (SettingsError const&) {
      // The program has an allocator of its own: peaks on the CPU are unknown.
    }
  }

  /// Call before fit, with the device that it trains on.
  void begin(c10::Device device, [[maybe_unused]] torch::nn::Module const& module);

  /// Nothing where no allocator counts.
  std::optional<std::int64_t> above_start() const;

 private:
#ifdef FRUGAL_CUDA
  static std::int64_t bytes_there(at::Tensor const& tensor) {
    return tensor.is_cuda() ? static_cast<std::int64_t>(tensor.nbytes()) : 0;
  }
  c10::DeviceIndex index() const {
    c10::cuda::CUDAGuard const guard(device_);
    return guard.current_device().index();
  }
  c10::CachingAllocator::Stat stats() const {
    // The first entry is the sum over all pools.
    return c10::cuda::CUDACachingAllocator::getDeviceStats(index()).allocated_bytes[0];
  }
#endif

  bool host_ = false;
  c10::Device device_ = c10::kCPU;
  std::int64_t live_ = 0;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/report/compare/peak_memory.ipp>
#endif
