// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/libtorch/quietly.hpp>
#include <frugal/report/profile/trace.hpp>
#include <frugal/report/profile/window_profile.hpp>

#include <ATen/record_function.h>
#include <c10/core/Device.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/autograd/profiler_kineto.h>
#include <torch/csrc/profiler/stubs/base.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

namespace frugal {
struct RunState;
}  // namespace frugal

namespace frugal::detail {

/// The part of the step that is running, as a record_function range and, if wanted, as an NVTX
/// range. One part ends where the next begins, so that they fill a window without gaps.
class StepRanges {
 public:
  StepRanges() = default;
  StepRanges(StepRanges const&) = delete;
  StepRanges& operator=(StepRanges const&) = delete;
  ~StepRanges() { leave(); }

  /// Whether LibTorch has NVTX here. The calls live in libtorch_cuda, which registers them.
  static bool has_nvtx() { return torch::profiler::impl::cudaStubs()->enabled(); }

  bool open() const { return range_.has_value(); }
  void begin(bool nvtx, std::string_view part);
  /// Does nothing outside of a window. `part` is a literal.
  void enter(std::string_view part, bool first = false);
  void leave();

  /// A range inside the current part.
  class [[nodiscard]] Nested {
   public:
    Nested(StepRanges const& ranges, std::string_view part) : nvtx_(ranges.open() && ranges.nvtx_) {
      if (!ranges.open()) return;
      range_.emplace(at::RecordScope::USER_SCOPE);
      if (range_->isActive()) range_->before(part.data());
      if (nvtx_) torch::profiler::impl::cudaStubs()->rangePush(part.data());
    }
    Nested(Nested const&) = delete;
    Nested& operator=(Nested const&) = delete;
    ~Nested() {
      if (nvtx_) torch::profiler::impl::cudaStubs()->rangePop();
    }

   private:
    std::optional<at::RecordFunction> range_;
    bool nvtx_;
  };

 private:
  std::optional<at::RecordFunction> range_;
  bool nvtx_ = false;
};

/// The windows of one fit of Profile: opens and closes them, and writes what they found. Whatever
/// fails here is one recommendation, and the end of profiling, never of the run.
class ProfileWindows {
  using Clock = std::chrono::steady_clock;

 public:
  struct Plan {
    std::chrono::duration<double> length{};
    std::uint64_t steps = 0;
    std::size_t traces = 0;
    bool memory = true;
    bool nvtx = false;
    bool graph = false;  ///< steps are replayed: no hook marks their parts
  };

  explicit ProfileWindows(Plan const& plan) : plan_(plan) {}
  ProfileWindows(ProfileWindows const&) = delete;
  ProfileWindows& operator=(ProfileWindows const&) = delete;
  ~ProfileWindows() { discard(); }

  StepRanges& ranges() { return ranges_; }
  bool open() const { return window_ != nullptr; }
  /// No further window: one has failed, or the device had nothing to do.
  bool over() const { return over_; }
  /// The last ones, as many as the file has.
  std::vector<WindowProfile> const& found() const { return found_; }

  /// Training goes on from here. Files are written if the run has a folder.
  void begin(RunState& run);

  /// `step_seconds`: of a step without profiler, 0 if unknown.
  void start(RunState& run, double step_seconds, std::optional<double> waited);

  /// A step of the window is complete. True if the window is.
  bool is_full();

  /// Ends the window and analyses it; null if that failed.
  WindowProfile const* finish(RunState& run, std::optional<double> waited);

  void stop() { over_ = true; }
  /// Drops the window: its run is being left.
  void discard();

 private:
  static bool tears_cupti_down();
  static double range_seconds(WindowProfile const& found, std::string_view name);
  /// A save or a validation that happens to be in the window is no overhead of the profiler.
  static double training_seconds(WindowProfile const& found);

  void keep_trace(RunState& run, WindowProfile& found,
                  std::vector<watch::MemoryPoint> const& memory, std::uint64_t began);

  void advise_of_folder(RunState& run) const;
  void give_up(RunState& run, std::string const& why);

  static constexpr std::size_t most_counters = 5000;

  Plan plan_;
  std::filesystem::path folder_;  ///< empty: the run has none
  std::optional<HotSpotsFile> file_;
  std::unique_ptr<KinetoWindow> window_;
  StepRanges ranges_;  // after the window: they end first
  Clock::time_point began_;
  Clock::duration opening_{};
  double step_seconds_ = 0;
  double waited_ = 0;
  std::uint64_t steps_ = 0;
  std::size_t kept_ = 0;
  bool over_ = false;
  std::vector<WindowProfile> found_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/report/profile/windows.ipp>
#endif
