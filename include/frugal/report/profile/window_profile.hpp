// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/profile/trace.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal::watch {

/// An operator or a range, and the time that it took.
struct HotSpot {
  std::string name;
  double share = 0;  ///< of the step time of the window, 0 to 1; threads and streams may overlap
  std::uint64_t calls = 0;
  double microseconds = 0;
};

namespace tallying {

struct Tally {
  std::uint64_t calls = 0;
  std::uint64_t nanoseconds = 0;
};
using Tallies = std::map<std::string, Tally, std::less<>>;

/// Self time of each name on the host: its spans without the spans nested in them, per thread.
void add_self_times(std::vector<TracedEvent const*> events, Tallies& tallies);

/// Device time under the operator that launched it; the kernel's own name where that is unknown.
void add_device_times(std::vector<TracedEvent> const& events, Tallies& tallies);

std::vector<HotSpot> sorted(Tallies const& tallies, std::uint64_t of, std::size_t most);

}  // namespace tallying

/// The events that took longest, by self time: on the CPU operators and ranges, with an accelerator
/// its own time by the operator that launched it. `step_time` in nanoseconds.
std::vector<HotSpot> hot_spots(Trace const& trace, std::uint64_t step_time, std::size_t most = 10);

/// The ranges by their whole time: the parts of a step, and a user's own record_function.
std::vector<HotSpot> ranges(Trace const& trace, std::uint64_t step_time, std::size_t most = 20);

/// What limits a step.
enum class Bound : unsigned char { input, compute, launch, host };

std::string_view name_of(Bound bound);

/// The step time of a window, divided; shares of it, 0 to 1, which add up to 1.
struct Division {
  std::uint64_t step_time = 0;  ///< nanoseconds of the window, without validations
  double busy = 0;              ///< the device works; on the CPU: an operator of the step runs
  double data = 0;              ///< the device is idle, and the host reads data
  double launch = 0;  ///< the device is idle, and the host is in an operator that feeds it
  double host = 0;    ///< the device is idle, and the host does something else
  double idle() const { return 1 - busy; }
  /// Share of the operators' self time in operators whose calls are short; on the CPU.
  double short_calls = 0;
  double policies = 0;  ///< share of the step that the policies' own work takes, saves included
};

/// The window's time without validations, which are no part of a step.
Spans training_of(Trace const& trace);

/// Divides the step time of a trace whose events are all of training.
Division divide(Trace const& trace, Spans const& training);

/// Shares from which the verdict is input, compute, and, of a busy CPU, launch.
inline constexpr double input_from = 0.3;
inline constexpr double compute_from = 0.5;
inline constexpr double short_calls_from = 0.5;

/// Reading data counts first, because reading ahead removes its share whole and changes nothing
/// else; then work, then whichever keeps the device waiting longer.
Bound judge(Division const& step, bool on_accelerator);

/// "37%".
std::string percent(double share);

/// What to do, with the policy and its page.
std::string advice_for(Bound bound, Division const& step, bool on_accelerator);

}  // namespace frugal::watch

namespace frugal {

/// What one window of Profile has found.
struct WindowProfile {
  std::uint64_t step = 0;   ///< optimizer step at the end of the window
  std::uint64_t steps = 0;  ///< that were profiled
  double seconds = 0;       ///< length of the window
  double step_seconds = 0;  ///< mean of its steps, without validations
  double device_idle = 0;   ///< share of the step time, 0 to 1
  watch::Bound bound = watch::Bound::compute;
  std::string advice{};
  double overhead_seconds = 0;  ///< that the window has cost the run
  std::string trace{};          ///< file, relative to the run directory; empty: none was kept
  std::vector<watch::HotSpot> hot_spots{};  ///< by self time, the longest first
  std::vector<watch::HotSpot> ranges{};     ///< parts of the step, by their whole time
  std::vector<watch::MemoryPoint> memory{};
  watch::MemoryPoint peak{};  ///< of the memory
};

namespace watch {

/// Drops the events of validations, and cuts the rest to the window.
void keep_training(Trace& trace, Spans const& training);

/// Self time in nanoseconds below which an operator costs more to call than to compute.
inline constexpr std::uint64_t short_call = 5000;

/// Share of the operators' self time that is in operators whose calls are short on average.
double short_calls(Trace const& trace);

/// Analyses a window. The caller adds steps, files and overhead.
WindowProfile analyse(Trace trace, std::size_t memory_points = 200);

/// Whether the device works a smaller share of the time than `least`.
inline bool hardly_works(WindowProfile const& found, double least) {
  return 1 - found.device_idle < least;
}

/// "aten::mm 63%".
inline std::string text_of(HotSpot const& spot) { return spot.name + " " + percent(spot.share); }

}  // namespace watch

}  // namespace frugal

namespace frugal::detail {

std::string json_of(WindowProfile const& window);

/// `hot_spots.json`: the last windows of a run, one per line.
class HotSpotsFile {
 public:
  /// The file is rewritten for each window, and its reader shows no more.
  static constexpr std::size_t most_windows = 1000;

  explicit HotSpotsFile(std::filesystem::path path) : path_(std::move(path)) {}

  /// Keeps the windows of an earlier process up to its checkpoint: the later ones are made again.
  /// What is not a file of this kind is replaced.
  void resume_at(std::uint64_t step);

  /// Adds a window, and replaces the file as a whole, so that a reader never sees half of it. False
  /// if that failed. The window's `overhead_seconds` become those that `overhead()` returns after
  /// that; in the file they are those before it, until the next window is added.
  template <class Overhead>
  bool add(WindowProfile& window, Overhead const& overhead) {
    keep(most_windows - 1);
    window.overhead_seconds = overhead();
    windows_.push_back(json_of(window));
    bool const written = write();
    window.overhead_seconds = overhead();
    windows_.back() = json_of(window);
    return written;
  }

 private:
  bool write() const;

  void keep(std::size_t most);

  std::filesystem::path path_;
  std::vector<std::string> windows_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/report/profile/window_profile.ipp>
#endif
