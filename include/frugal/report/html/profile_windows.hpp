// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/html/series.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace frugal::html {

/// One operation that took time.
struct HotSpot {
  std::string name;
  double share = 0;         ///< of the window; above 1 where threads or streams overlap
  double microseconds = 0;  ///< NaN if unknown
  std::uint64_t calls = 0;
};

/// One profiled window, as the policy Profile writes it to profile/hot_spots.json.
struct ProfileWindow {
  double step = 0, seconds = 0, step_seconds = 0, overhead_seconds = 0;
  std::optional<double> device_idle{};  ///< 0 to 1
  std::string bound, advice, trace;
  std::vector<HotSpot> hot_spots{};
  std::uint64_t damaged = 0;  ///< hot spots without a name or a share, which are left out
  Series memory;              ///< bytes over the window's seconds
};

/// Reads {"version":1,"windows":[...]}. A damaged hot spot is counted and left out. DataError with
/// the byte offset for anything else.
std::vector<ProfileWindow> parse_windows(std::string const& text, std::string const& where);

}  // namespace frugal::html

#ifndef FRUGAL_COMPILED
#include <frugal/report/html/profile_windows.ipp>
#endif
