// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Device.h>
#include <c10/core/StorageImpl.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <exception>

#include <frugal/core/libtorch/cuda_memory.hpp>  // IWYU pragma: keep
#include <frugal/core/libtorch/host_meter.hpp>
#include <frugal/core/libtorch/out_of_memory.hpp>

namespace frugal::detail {

/// Bytes of a module's parameters and buffers; those that the meter does not count, separately.
struct ModuleBytes {
  std::int64_t all = 0;
  std::int64_t not_counted = 0;

  static ModuleBytes of(torch::nn::Module& module);
};

/// Memory of the CPU's tensors, up to a limit: the module's, and allocations from here on.
class HostMemory {
 public:
  HostMemory(std::int64_t limit, torch::nn::Module& module)
      : limit_(limit), module_(ModuleBytes::of(module).all), base_(HostMeter::live() - module_) {}

  std::int64_t room() const { return limit_; }
  void begin() { HostMeter::forget_peak(); }
  /// Peak of the allocated bytes since begin().
  std::int64_t taken() const { return HostMeter::peak() - base_; }
  void after_failure() {}
  /// For the lifetime of the result, allocations of this thread above `bytes` fail.
  HostMeter::Limit limit(std::int64_t bytes) const { return HostMeter::Limit(base_ + bytes); }
  HostMeter::Limit limit() const { return limit(limit_); }
  /// Excludes bytes that came or went in between and do not belong to training.
  void forgive(std::int64_t bytes) { base_ += bytes; }

 private:
  std::int64_t limit_;
  std::int64_t module_;
  std::int64_t base_;
};

/// Memory of a device that reports nothing, except that an allocation fails.
class UnknownMemory {
 public:
  UnknownMemory(c10::Device, std::int64_t) {}

  static std::int64_t room() { return HostMeter::unlimited; }
  static void begin() {}
  static std::int64_t taken() { return 0; }
  static void after_failure() {}
};

#ifdef FRUGAL_CUDA
using DeviceMemory = CudaMemory;
#else
using DeviceMemory = UnknownMemory;
#endif

/// Whether a step fits with the margin. False if it ran out of memory or used more. `memory` is
/// queried before and after the step.
template <class Memory, class Step>
bool fits(Memory& memory, double margin, Step&& step) {
  memory.begin();
  auto const most = static_cast<std::int64_t>(static_cast<double>(memory.room()) * (1 - margin));
  bool failed = false;
  try {
    step(most);
  } catch (...) {
    if (!is_out_of_memory(std::current_exception())) throw;
    failed = true;  // the exception may keep tensors alive until this block ends
  }
  if (failed) memory.after_failure();
  return !failed && memory.taken() <= most;
}

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/policy/auto_batch/memory.ipp>
#endif
