// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/signal_free_thread.hpp>
#include <frugal/report/energy/nvml.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

namespace frugal::energy {

/// Energy of the processors and their memory, from the running average power limit (RAPL) counters
/// that Linux shows below /sys/class/powercap, on Intel and on AMD. They count for the whole
/// machine, other jobs included.
///
/// Counts the zones "package-N" and "dram". The zones "core" and "uncore" are parts of a package,
/// "psys" has the packages in it, and intel-rapl-mmio shows the package a second time.
///
/// Errors  none thrown: `problem()` says why a counter is not read. A zone that fails later is left
///         out from then on.
/// Source  Linux, Documentation/power/powercap/powercap.rst
class Rapl {
 public:
  explicit Rapl(std::filesystem::path const& root = "/sys/class/powercap") {
    std::error_code error;
    std::vector<std::filesystem::path> zones;
    for (auto at = std::filesystem::directory_iterator(root, error);
         !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
      if (at->path().filename().string().starts_with("intel-rapl:")) zones.push_back(at->path());
    }
    std::sort(zones.begin(), zones.end());
    for (auto const& zone : zones) add(zone);
    if (zones_.empty() && problem_.empty()) {
      problem_ = "this machine shows no RAPL counters in " + root.string();
    }
  }

  /// Whether any counter is read.
  bool reads() const { return !zones_.empty(); }
  /// Why counters are missing; empty if none is.
  std::string const& problem() const { return problem_; }
  /// Why a counter that was read is not read any more; empty if each still is.
  std::string const& failure() const { return failure_; }
  /// Whether there is a counter that this user may not read.
  bool denied() const { return denied_; }
  std::size_t zones() const { return zones_.size(); }

  /// Joules since this object was made. Call it more often than the counters wrap: at 300 W a
  /// range of 262 kJ lasts 14 minutes.
  double joules();

 private:
  struct Zone {
    std::filesystem::path counter;
    std::uint64_t range;  ///< microjoules at which the counter wraps
    std::uint64_t last;   ///< microjoules
  };

  void add(std::filesystem::path const& folder);

  std::string report(std::filesystem::path const& counter, int reason);

  /// The first line. Sets errno to 0, or to the reason of a failure.
  static std::optional<std::string> text_of(std::filesystem::path const& path);

  static std::optional<std::uint64_t> number_in(std::filesystem::path const& path);

  std::vector<Zone> zones_;
  std::string problem_;
  std::string failure_;
  bool denied_ = false;
  double joules_ = 0;
};

inline constexpr double joules_per_kilowatt_hour = 3.6e6;

/// Where energy is read.
struct EnergySettings {
  bool processors = true;  ///< by RAPL
  std::filesystem::path powercap = "/sys/class/powercap";
  bool gpus = true;  ///< by NVML
  std::string nvml = nvml_library;
  std::optional<std::vector<std::string>> devices{};  ///< "0" or "GPU-..."; nothing: every device
  double interval_seconds = 5;                        ///< between readings
};

/// The energy of processors and devices together.
class EnergyMeter {
 public:
  explicit EnergyMeter(EnergySettings const& settings) {
    if (settings.processors) rapl_ = std::make_unique<Rapl>(settings.powercap);
    if (settings.gpus) nvml_ = std::make_unique<Nvml>(settings.devices, settings.nvml);
  }

  bool reads() const { return (rapl_ && rapl_->reads()) || (nvml_ && nvml_->reads()); }

  /// Whether there is a counter that this user may not read.
  bool denied() const { return rapl_ && rapl_->denied(); }
  /// Why a counter is not read, one text each.
  std::vector<std::string> problems() const;

  /// Why counters that were read are not read any more, one text each.
  std::vector<std::string> failures() const;

  /// Since this object was made.
  double joules() { return (rapl_ ? rapl_->joules() : 0) + (nvml_ ? nvml_->joules() : 0); }

 private:
  std::unique_ptr<Rapl> rapl_;
  std::unique_ptr<Nvml> nvml_;
};

/// Reads a meter in a thread of its own: a call of NVML takes up to milliseconds, and a counter of
/// RAPL wraps within minutes, however long a step takes.
class EnergySampler {
 public:
  explicit EnergySampler(EnergySettings const& settings)
      : meter_(settings),
        problems_(meter_.problems()),
        denied_(meter_.denied()),
        reads_(meter_.reads()) {
    if (reads_) thread_.emplace(settings.interval_seconds, [this] { sample(); });
  }
  EnergySampler(EnergySampler const&) = delete;
  EnergySampler& operator=(EnergySampler const&) = delete;
  ~EnergySampler() { stop(); }

  /// Whether any counter was read in the beginning.
  bool reads() const { return reads_; }
  /// Whether there was a counter that this user may not read.
  bool denied() const { return denied_; }
  /// Whether a counter that was read in the beginning could not be read later.
  bool failing() const { return failing_.load(std::memory_order_relaxed); }
  /// At the last reading, since the beginning.
  double joules() const { return joules_.load(std::memory_order_relaxed); }
  /// Why counters were not read in the beginning.
  std::vector<std::string> const& problems() const { return problems_; }

  /// Ends the thread, and reads for the last time. Returns what has failed meanwhile.
  std::vector<std::string> stop();

 private:
  void sample();

  EnergyMeter meter_;
  std::vector<std::string> problems_;
  bool denied_;
  bool reads_;
  std::atomic<double> joules_ = 0;
  std::atomic<bool> failing_ = false;
  std::optional<frugal::detail::PeriodicThread> thread_;
};

}  // namespace frugal::energy

#ifndef FRUGAL_COMPILED
#include <frugal/report/energy/meter.ipp>
#endif
