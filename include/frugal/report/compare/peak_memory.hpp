// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Device.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <optional>

#include <frugal/core/libtorch/cuda_memory.hpp>  // IWYU pragma: keep
#include <frugal/core/libtorch/host_meter.hpp>
#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

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
  FRUGAL_INLINE void begin(c10::Device device, [[maybe_unused]] torch::nn::Module const& module) {
    device_ = device;
#ifdef FRUGAL_CUDA
    if (!device.is_cuda()) return;
    std::int64_t own = 0;  // made on the device already
    for (at::Tensor const& tensor : each_once(module.parameters())) own += bytes_there(tensor);
    for (at::Tensor const& tensor : each_once(module.buffers())) own += bytes_there(tensor);
    c10::cuda::CUDACachingAllocator::resetPeakStats(index());
    live_ = stats().current - own;
#endif
  }

  /// Nothing where no allocator counts.
  FRUGAL_INLINE std::optional<std::int64_t> above_start() const {
    if (device_.is_cpu()) return host_ ? std::optional(HostMeter::peak() - live_) : std::nullopt;
#ifdef FRUGAL_CUDA
    if (device_.is_cuda()) return stats().peak - live_;
#endif
    return std::nullopt;
  }

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
