// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace frugal::detail {

/// The order of `count` recipes in each of `repeats` rounds. A round at random is followed by the
/// same in reverse, so that a steady drift of the machine hits each recipe of such a pair alike,
/// and no recipe always runs after the same other one.
std::vector<std::vector<std::size_t>> round_orders(std::size_t count, std::size_t repeats,
                                                   std::uint64_t seed);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/report/compare/order.ipp>
#endif
