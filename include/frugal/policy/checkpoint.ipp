// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/checkpoint.hpp>

#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE std::string kept_outlook(std::uint64_t every, RunLimits const& horizon) {
  if (every == 0 || !horizon.total_steps || *horizon.total_steps >= every) return {};
  return "KeepEvery saves and keeps each step that is a multiple of " + std::to_string(every) +
         ", and the run ends at step " + std::to_string(*horizon.total_steps);
}

}  // namespace frugal::detail
