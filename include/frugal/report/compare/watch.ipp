// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/compare/watch.hpp>

#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/inline.hpp>

#include <sys/resource.h>

#include <chrono>

namespace frugal::detail {

FRUGAL_INLINE void PeakMemory::begin(c10::Device device,
                                     [[maybe_unused]] torch::nn::Module const& module) {
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

FRUGAL_INLINE std::optional<std::int64_t> PeakMemory::above_start() const {
  if (device_.is_cpu()) return host_ ? std::optional(HostMeter::peak() - live_) : std::nullopt;
#ifdef FRUGAL_CUDA
  if (device_.is_cuda()) return stats().peak - live_;
#endif
  return std::nullopt;
}

FRUGAL_INLINE Clocks Clocks::now() {
  std::chrono::duration<double> const wall = std::chrono::steady_clock::now().time_since_epoch();
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  auto const seconds = [](timeval const& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return {wall.count(), seconds(used.ru_utime) + seconds(used.ru_stime)};
}

FRUGAL_INLINE void Clocks::add(Clocks const& from, Clocks const& to) {
  wall += to.wall - from.wall;
  processor += to.processor - from.processor;
}

}  // namespace frugal::detail
