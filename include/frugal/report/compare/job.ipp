// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/compare/job.hpp>

#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <string>
#include <system_error>

#include <frugal/base/number_text.hpp>
#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal {

FRUGAL_INLINE void CompareSettings::require(bool validates) const {
  if (repeats < 1) {
    throw SettingsError({.what = "the comparison has no repeats",
                         .where = "CompareSettings::repeats",
                         .why = "nothing would be run",
                         .fix = "Set 1 or more; 3 show a spread."});
  }
  if (dollars_per_hour && !(*dollars_per_hour >= 0 && std::isfinite(*dollars_per_hour))) {
    throw SettingsError({.what = "the price is " + detail::general(*dollars_per_hour, 6),
                         .where = "CompareSettings::dollars_per_hour",
                         .why = "no machine costs that",
                         .fix = "Give US dollars per hour of the whole machine, 0 or more."});
  }
  target.require();
  if (target.given() && !validates) {
    throw SettingsError({.what = "the target " + target.text() + " cannot be reached",
                         .where = "CompareSettings::target",
                         .why = "the job has no validation data to measure it on",
                         .fix = "Give the job a source after the one that it trains on."});
  }
  std::error_code unknown;
  if (!settings.run_dir.empty() && std::filesystem::exists(settings.run_dir, unknown) &&
      !std::filesystem::is_empty(settings.run_dir, unknown)) {
    throw SettingsError({.what = "the folder of the comparison is not empty",
                         .where = settings.run_dir.string(),
                         .why = "a recipe with Checkpoint would resume from an earlier run",
                         .fix = "Name another folder, or delete this one."});
  }
}

}  // namespace frugal

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
