// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/profile.hpp>

#include <frugal/inline.hpp>

#include <algorithm>
#include <cstddef>

namespace frugal::detail {

FRUGAL_INLINE std::string finding_of(WindowProfile const& window) {
  std::string text = "step " + std::to_string(window.step) + " is " +
                     std::string(watch::name_of(window.bound)) + "-bound, device idle " +
                     watch::percent(window.device_idle);
  for (std::size_t i = 0; i < std::min<std::size_t>(3, window.hot_spots.size()); ++i) {
    text += (i == 0 ? "; " : ", ") + watch::text_of(window.hot_spots[i]);
  }
  return text + ". " + window.advice;
}

FRUGAL_INLINE Event event_of(WindowProfile const& window) {
  Event event{.name = "profile",
              .fields = {{"window_seconds", window.seconds},
                         {"device_idle", window.device_idle},
                         {"bound", std::string(watch::name_of(window.bound))},
                         {"advice", window.advice},
                         {"overhead_seconds", window.overhead_seconds},
                         {"trace", window.trace}}};
  for (std::size_t i = 0; i < std::min<std::size_t>(5, window.hot_spots.size()); ++i) {
    event.fields.emplace_back("top" + std::to_string(i + 1), watch::text_of(window.hot_spots[i]));
  }
  return event;
}

FRUGAL_INLINE std::string verdict_of(WindowProfile const& window) {
  return "Profile: the job is " + std::string(watch::name_of(window.bound)) + "-bound at step " +
         std::to_string(window.step) + ". ";
}

FRUGAL_INLINE std::string no_window_text(std::uint64_t step, std::uint64_t warm_up) {
  return "Profile: the run ended at step " + std::to_string(step) +
         ", before its first window. warm_up is " + std::to_string(warm_up) +
         " steps: a window opens that many after it is due. Set a lower warm_up, or a cadence that "
         "is due earlier.";
}

}  // namespace frugal::detail
