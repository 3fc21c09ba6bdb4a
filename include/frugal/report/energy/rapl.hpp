// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <frugal/inline.hpp>

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
  FRUGAL_INLINE double joules() {
    for (std::size_t i = 0; i < zones_.size();) {
      Zone& zone = zones_[i];
      auto const now = number_in(zone.counter);
      if (!now) {
        failure_ = report(zone.counter, errno);
        zones_.erase(zones_.begin() + static_cast<std::ptrdiff_t>(i));
        continue;
      }
      // The counter wraps to 0 at the end of its range.
      std::uint64_t const more =
          *now >= zone.last ? *now - zone.last
                            : (zone.range >= zone.last ? zone.range - zone.last + *now : *now);
      joules_ += static_cast<double>(more) * 1e-6;
      zone.last = *now;
      ++i;
    }
    return joules_;
  }

 private:
  struct Zone {
    std::filesystem::path counter;
    std::uint64_t range;  ///< microjoules at which the counter wraps
    std::uint64_t last;   ///< microjoules
  };

  FRUGAL_INLINE void add(std::filesystem::path const& folder) {
    std::string const name = text_of(folder / "name").value_or("");
    if (!name.starts_with("package") && name != "dram") return;
    std::filesystem::path const counter = folder / "energy_uj";
    auto const now = number_in(counter);
    if (!now) {
      report(counter, errno);
      return;
    }
    zones_.push_back({counter, number_in(folder / "max_energy_range_uj").value_or(0), *now});
  }

  FRUGAL_INLINE std::string report(std::filesystem::path const& counter, int reason) {
    std::string text = "the RAPL counter " + counter.string() + " cannot be read: " +
                       (reason == 0 ? "it has no number" : std::generic_category().message(reason));
    bool const denied = reason == EACCES || reason == EPERM;
    if (denied) {
      text += "; since Linux 5.10 only root may read it: chmod a+r the file, or run as root";
    }
    if (problem_.empty()) {
      problem_ = text;
      denied_ = denied;
    }
    return text;
  }

  /// The first line. Sets errno to 0, or to the reason of a failure.
  FRUGAL_INLINE static std::optional<std::string> text_of(std::filesystem::path const& path) {
    errno = 0;
    std::FILE* const file = std::fopen(path.c_str(), "re");
    if (file == nullptr) return {};
    char text[64] = {};
    errno = 0;
    std::size_t const size = std::fread(text, 1, sizeof text - 1, file);
    int const reason = std::ferror(file) != 0 ? errno : 0;
    std::fclose(file);
    errno = reason;
    if (reason != 0) return {};
    std::string_view const line(text, size);
    return std::string(line.substr(0, line.find('\n')));
  }

  FRUGAL_INLINE static std::optional<std::uint64_t> number_in(std::filesystem::path const& path) {
    auto const text = text_of(path);
    if (!text) return {};
    std::uint64_t number = 0;
    auto const [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
    errno = 0;
    if (error != std::errc() || end != text->data() + text->size()) return {};
    return number;
  }

  std::vector<Zone> zones_;
  std::string problem_;
  std::string failure_;
  bool denied_ = false;
  double joules_ = 0;
};

}  // namespace frugal::energy
