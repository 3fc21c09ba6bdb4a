// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include <frugal/core/run/settings.hpp>
#include <frugal/data/source.hpp>
#include <frugal/inline.hpp>

namespace frugal {

/// The length of a run: its limits, and what follows from them for a source with a known size.
struct RunLimits {
  static constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t epochs = unlimited;                  ///< the run ends after this many epochs
  std::uint64_t steps = unlimited;                   ///< or after this many optimizer steps
  std::optional<std::uint64_t> steps_per_epoch{};    ///< nothing for a source of unknown size
  std::optional<std::uint64_t> total_steps{};        ///< nothing if unknown
  std::optional<std::uint64_t> samples_per_epoch{};  ///< like steps_per_epoch

  /// Epochs that the run completes at most.
  std::uint64_t complete_epochs() const { return epochs_in(0); }
  /// Epochs that it begins at most.
  std::uint64_t begun_epochs() const { return epochs_in(steps_per_epoch.value_or(1) - 1); }

 private:
  FRUGAL_INLINE std::uint64_t epochs_in(std::uint64_t more) const {
    std::uint64_t const each = steps_per_epoch.value_or(0);
    if (each == 0 || !total_steps || *total_steps > unlimited - more) return epochs;
    return std::min(epochs, (*total_steps + more) / each);
  }
};

namespace detail {

/// The limits in the settings; one epoch by default.
FRUGAL_INLINE RunLimits limits_of(Settings const& settings) {
  return {.epochs = settings.epochs.value_or(settings.steps ? RunLimits::unlimited : 1),
          .steps = settings.steps.value_or(RunLimits::unlimited)};
}

template <class Train>
RunLimits horizon_of(Settings const& settings, Train const& train, std::uint64_t micro_batches) {
  RunLimits horizon = limits_of(settings);
  if constexpr (SizedSource<Train>) {
    std::uint64_t const per_epoch = (train.batches() + micro_batches - 1) / micro_batches;
    horizon.steps_per_epoch = per_epoch;
    horizon.samples_per_epoch = train.samples();
    // "For ever" is a large number of epochs, whose product would overflow.
    bool const countable = per_epoch == 0 || horizon.epochs <= RunLimits::unlimited / per_epoch;
    horizon.total_steps =
        countable ? std::min(per_epoch * horizon.epochs, horizon.steps) : horizon.steps;
  } else if (settings.steps) {
    horizon.total_steps = settings.steps;
  }
  return horizon;
}

}  // namespace detail
}  // namespace frugal
