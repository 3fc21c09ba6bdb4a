// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/run_limits.hpp>
#include <frugal/inline.hpp>

namespace frugal {

FRUGAL_INLINE std::uint64_t RunLimits::epochs_in(std::uint64_t more) const {
  std::uint64_t const each = steps_per_epoch.value_or(0);
  if (each == 0 || !total_steps || *total_steps > unlimited - more) return epochs;
  return std::min(epochs, (*total_steps + more) / each);
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE RunLimits limits_of(Settings const& settings) {
  return {.epochs = settings.epochs.value_or(settings.steps ? RunLimits::unlimited : 1),
          .steps = settings.steps.value_or(RunLimits::unlimited)};
}

}  // namespace frugal::detail
