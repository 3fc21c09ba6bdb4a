// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>

#include <frugal/core/run/settings.hpp>

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
  std::uint64_t epochs_in(std::uint64_t more) const;
};

namespace detail {

/// The limits in the settings; one epoch by default.
RunLimits limits_of(Settings const& settings);

template <class Train>
RunLimits horizon_of(Settings const& settings, Train const& train, std::uint64_t micro_batches) {
  RunLimits horizon = limits_of(settings);
  // As SizedSource, which only sources need to include.
  if constexpr (requires {
                  { train.samples() } -> std::convertible_to<std::uint64_t>;
                  { train.batches() } -> std::convertible_to<std::uint64_t>;
                }) {
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

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/run_limits.ipp>
#endif
