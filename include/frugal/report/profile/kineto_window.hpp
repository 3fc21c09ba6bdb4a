// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <frugal/core/libtorch/quietly.hpp>
#include <frugal/report/profile/trace.hpp>

namespace frugal::detail {

/// Whether an event of some device belongs to a run on `run`. The host has one memory, of any
/// index.
inline bool is_of_run(c10::Device run, c10::DeviceType type, int index) {
  return type == run.type() && (run.is_cpu() || index == run.index());
}

/// LibTorch's profiler (Kineto), recording in this thread and in those of its backward passes.
///
/// Kineto records one trace per process. It does not refuse a second recording in the same thread,
/// and the first one is lost then; so this looks first, and counts its own.
class KinetoWindow {
 public:
  /// Null if another profiler is active in this process. Throws what LibTorch throws.
  static std::unique_ptr<KinetoWindow> open(c10::Device device, bool memory);

  KinetoWindow(KinetoWindow const&) = delete;
  KinetoWindow& operator=(KinetoWindow const&) = delete;
  ~KinetoWindow() {
    if (recording_) quietly([] { torch::autograd::profiler::disableProfiler(); });
    result_.reset();
    taken().store(false);
  }

  /// Waits for the work that the host has submitted, so that it is in the window that launched it.
  void drain() const;

  /// Ends the recording. The window is that of its ranges, which fill it.
  watch::Trace close();
  /// Writes Kineto's own trace file. It reports no failure: look whether the file is there.
  void save(std::filesystem::path const& file) { result_->save(file.string()); }

 private:
  explicit KinetoWindow(c10::Device device) : device_(with_index(device)) {}

  /// Events have an index; "cuda" is the current device.
  static c10::Device with_index(c10::Device device);

  static std::atomic<bool>& taken() {
    static std::atomic<bool> is_taken{false};
    return is_taken;
  }

  void add(torch::autograd::profiler::KinetoEvent const& event, watch::Trace& trace) const;
  static constexpr std::uint8_t cpu_op = 0;

  c10::Device device_;
  bool recording_ = false;
  std::unique_ptr<torch::autograd::profiler::ProfilerResult> result_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/report/profile/kineto_window.ipp>
#endif
