// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/trials/history.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <limits>
#include <utility>

namespace frugal {

FRUGAL_INLINE ObjectiveValues SearchTrial::values(std::size_t objectives) const {
  if (state != TrialState::failed && !rungs.empty()) return rungs.back().values;
  return ObjectiveValues(objectives, std::numeric_limits<double>::infinity());
}

FRUGAL_INLINE SearchHistory SearchHistory::first(std::size_t count) const {
  auto const end = trials.begin() + static_cast<std::ptrdiff_t>(std::min(count, trials.size()));
  return {.trials = {trials.begin(), end}};
}

}  // namespace frugal
