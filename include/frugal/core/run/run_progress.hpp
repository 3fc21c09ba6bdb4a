// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <frugal/base/wall_clock.hpp>
#include <frugal/core/run/counters.hpp>
#include <frugal/core/run/event.hpp>
#include <frugal/core/run/run_limits.hpp>

namespace frugal {

/// What one window, or a window that is passed over, has read.
struct WindowSize {
  std::uint64_t micro_batches = 0;
  std::uint64_t samples = 0;
  std::uint64_t tokens = 0;
};

/// How far a run is: its counters, its limits, its time, and where it has been resumed.
class RunProgress {
 public:
  using Clock = WallClock;

  RunProgress() = default;
  explicit RunProgress(RunLimits const& horizon) : horizon_(horizon) {}

  Counters const& counters() const { return counters_; }
  RunLimits const& horizon() const { return horizon_; }
  /// Whether the run may make one more step, in whatever epoch.
  bool may_step() const { return counters_.step < horizon_.steps; }
  /// Whether Settings::epochs and steps leave anything to train.
  bool has_steps_left() const { return counters_.epoch < horizon_.epochs && may_step(); }
  /// Whether samples of the current epoch have been read.
  bool is_within_epoch() const { return counters_.position != 0; }

  // ---- the steps of a run, in their order

  /// True once in each epoch, also if the run is resumed within one.
  bool begin_epoch() { return !std::exchange(epoch_begun_, true); }
  void count_micro_batch() { ++counters_.micro_batch; }
  /// A window is whole. `position`: the place in the epoch after it. Windows that were no step count with the
  /// next one.
  void add_window(WindowSize const& window, std::uint64_t position);
  /// The window was an optimizer step, or its gradients were not finite.
  void close_window(bool is_step);
  /// A policy has skipped the window before it was trained.
  void pass_over_window(std::uint64_t position);
  void end_epoch();
  /// To the counters of a snapshot.
  void go_to(Counters const& there) { counters_ = there; }

  // ---- time

  /// The fit begins now.
  void start_clock() { began_ = Clock::now(); }
  /// Wall time of training, including that before a resume.
  double seconds() const;
  /// Of it, in earlier processes.
  double seconds_before() const { return seconds_before_; }
  /// Training continues from a checkpoint made after `seconds` of training.
  void resume_from(Resumed from, double seconds);
  /// The checkpoint from which this process went on.
  std::optional<Resumed> const& resumed() const { return resumed_; }

  // ---- what the progress is of

  /// What the training data and their order are (DataIdentity); identified by a policy that saves.
  std::map<std::string, std::string> const& data() const { return data_; }
  void identify_data(std::map<std::string, std::string> data) { data_ = std::move(data); }

  /// At the end of a fit: the step whose weights the module holds, if a policy has restored some.
  std::optional<std::uint64_t> restored_step() const { return restored_step_; }
  void set_restored_step(std::uint64_t step) { restored_step_ = step; }

  template <class Archive>
  void persist_counters(Archive& archive) {
    counters_.persist(archive);
  }
  template <class Archive>
  void persist_epoch(Archive& archive) {
    archive("epoch_begun", epoch_begun_);
  }

 private:
  Counters counters_{};
  RunLimits horizon_{};
  bool epoch_begun_ = false;  ///< on_epoch_begin has been emitted for this epoch
  Clock::time_point began_ = Clock::now();
  double seconds_before_ = 0;
  std::optional<Resumed> resumed_{};
  std::optional<std::uint64_t> restored_step_{};
  std::map<std::string, std::string> data_{};
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/run_progress.ipp>
#endif
