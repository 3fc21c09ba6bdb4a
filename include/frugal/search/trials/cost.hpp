// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

#include <frugal/search/trials/history.hpp>

namespace frugal {

/// The price of a second that no CostMeter has billed: as given, or the mean of the billed ones. Nothing if
/// neither is known; then no cost is.
std::optional<double> dollars_per_second(SearchHistory const& of,
                                         std::optional<double> dollars_per_hour);

/// Cost of a trial up to the end of a rung: as it is recorded, or by its time.
std::optional<double> dollars_until(SearchTrial const& of, std::size_t rung,
                                    std::optional<double> per_second);

/// Cost of all its attempts that have ended; nothing without a price.
std::optional<double> dollars_of(SearchTrial const& of, std::optional<double> per_second);

/// Cost of all trials, repeats included.
std::optional<double> dollars_of(SearchHistory const& of, std::optional<double> per_second);

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/search/trials/cost.ipp>
#endif
