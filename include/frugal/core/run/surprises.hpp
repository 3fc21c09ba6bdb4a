// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>
#include <string>

#include <frugal/base/wall_clock.hpp>

// What a run does that its user hardly wants, and would not see. It is in Report::warnings, and at once a line
// on stderr.
namespace frugal::detail {

/// "frugal: warning: ..." on stderr.
void say_warning(std::string const& text);

/// What a machine has of CUDA.
struct CudaHere {
  int devices = 0;          ///< that LibTorch sees
  bool has_driver = false;  ///< NVIDIA's driver runs
  bool is_linked = false;   ///< this program has LibTorch's part for CUDA
  bool is_hidden = false;   ///< CUDA_VISIBLE_DEVICES names no device
  static CudaHere look();
};

/// A run on the CPU, beside a GPU that nobody asked about; otherwise empty.
std::string unused_gpu(bool device_is_given, c10::Device used, CudaHere const& here);

/// The processors that a process had for its threads.
struct ProcessorUse {
  int threads = 1;
  double seconds = 0;        ///< wall time
  double cpu_seconds = 0;    ///< of all threads
  std::uint64_t losses = 0;  ///< of a processor to another thread or process
  std::uint64_t steps = 0;

  static ProcessorUse now();
};

/// Threads that wait for one another because others use the processors; otherwise empty. Each step of several
/// threads ends with the last of them, so that a step takes as long as it takes to give each its turn.
std::string stalled_threads(ProcessorUse const& used);

/// Looks at the processors once, about a second after the run began.
class StallWatch {
 public:
  /// Of a run on the CPU; otherwise it never looks.
  void begin(c10::Device device, std::uint64_t step);
  /// The step at which look() wants to be called.
  std::uint64_t next() const { return next_; }
  std::string look(std::uint64_t step);

 private:
  static constexpr std::uint64_t never = ~std::uint64_t{0};
  static constexpr double least_seconds = 1;

  std::uint64_t next_ = never;
  std::uint64_t begun_at_ = 0;
  ProcessorUse before_{};
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/surprises.ipp>
#endif
