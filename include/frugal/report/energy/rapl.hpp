// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
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

}  // namespace frugal::energy

#ifndef FRUGAL_COMPILED
#include <frugal/report/energy/rapl.ipp>
#endif
