// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/surprises.hpp>

#include <ATen/Parallel.h>

#include <sys/resource.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string_view>
#include <system_error>

#include <frugal/base/number_text.hpp>
#include <frugal/core/libtorch/devices.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE void say_warning(std::string const& text) {
  std::cerr << "frugal: warning: " + text + '\n' << std::flush;
}

FRUGAL_INLINE CudaHere CudaHere::look() {
  std::error_code ignored;
  char const* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  std::string_view const listed = visible == nullptr ? "0" : visible;
  return {.devices = count_of(c10::DeviceType::CUDA),
          .has_driver = std::filesystem::exists("/proc/driver/nvidia/version", ignored),
          .is_linked = c10::impl::hasDeviceGuardImpl(c10::DeviceType::CUDA),
          .is_hidden = listed.empty() || listed.starts_with("-")};
}

FRUGAL_INLINE std::string unused_gpu(bool device_is_given, c10::Device used, CudaHere const& here) {
  if (device_is_given || !used.is_cpu() || here.is_hidden) return {};
  if (here.devices > 0) {
    return "this run is on the CPU, where its module is, and there is a GPU: set Settings::device "
           "to "
           "\"cuda\", or to \"cpu\" if that is meant";
  }
  if (here.has_driver && here.is_linked) {
    return "this run is on the CPU, and LibTorch finds no GPU although NVIDIA's driver is there: "
           "the driver may be too "
           "old for this LibTorch, or the container or job was given no GPU. If the CPU is meant, "
           "set "
           "Settings::device to \"cpu\"";
  }
  if (here.has_driver) {
    return "this run is on the CPU, and there is a GPU that this program cannot use, because it is "
           "linked without CUDA: build it with FRUGAL_CUDA=ON and a LibTorch for CUDA, or set "
           "Settings::device to \"cpu\" if that is meant";
  }
  return {};
}

FRUGAL_INLINE ProcessorUse ProcessorUse::now() {
  ::rusage used{};
  if (::getrusage(RUSAGE_SELF, &used) != 0) return {};
  auto const seconds = [](::timeval const& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  std::chrono::duration<double> const wall = std::chrono::steady_clock::now().time_since_epoch();
  return {.threads = at::get_num_threads(),
          .seconds = wall.count(),
          .cpu_seconds = seconds(used.ru_utime) + seconds(used.ru_stime),
          .losses = static_cast<std::uint64_t>(used.ru_nivcsw)};
}

FRUGAL_INLINE std::string stalled_threads(ProcessorUse const& used) {
  // LibTorch's threads wait for one another awake, so that a process which is not disturbed has nearly as many
  // processors as threads. One that waits for data or a disk gives its processors away, and does not lose them.
  constexpr double share = 0.75;
  constexpr double losses_per_second = 20;
  if (used.threads < 2 || used.steps == 0 || !(used.seconds > 0)) return {};
  double const had = used.cpu_seconds / used.seconds;
  double const lost = static_cast<double>(used.losses) / used.seconds;
  if (had >= share * used.threads || lost < losses_per_second) return {};
  return "the " + std::to_string(used.threads) +
         " threads of this process wait for one another, because others use the processors: it "
         "had " +
         fixed(had, 1) + " of them, lost one " + fixed(lost, 0) +
         " times a second, and a step took " +
         fixed(1000 * used.seconds / static_cast<double>(used.steps), 1) +
         " ms. Fewer threads may be many times as fast: start the program with OMP_NUM_THREADS=1 "
         "in its "
         "environment, or a number of processors that are free";
}

FRUGAL_INLINE void StallWatch::begin(c10::Device device, std::uint64_t step) {
  if (!device.is_cpu() || at::get_num_threads() < 2) return;
  // The first step makes the optimizer's state, and threads.
  begun_at_ = step + 1;
  next_ = step + 1;
}

FRUGAL_INLINE std::string StallWatch::look(std::uint64_t step) {
  ProcessorUse used = ProcessorUse::now();
  if (step <= begun_at_) {
    before_ = used;
    begun_at_ = step;
    next_ = step + 8;
    return {};
  }
  used.steps = step - begun_at_;
  used.seconds -= before_.seconds;
  if (used.seconds < least_seconds) {
    next_ = step + used.steps;
    return {};
  }
  next_ = never;
  used.cpu_seconds -= before_.cpu_seconds;
  used.losses -= before_.losses;
  return stalled_threads(used);
}

}  // namespace frugal::detail
