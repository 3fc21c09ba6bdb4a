// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <frugal/cluster/world.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/error.hpp>

namespace frugal::detail {

[[noreturn]] inline void refuse_share(World const& world, int micro_batches, char const* name,
                                      std::string why, char const* multiple) {
  throw SettingsError({.what = std::to_string(world.size) + " processes cannot share windows of " +
                               std::to_string(micro_batches) + " micro-batches",
                       .where = name,
                       .why = std::move(why),
                       .fix = std::string("Use Accumulate<N> with ") + multiple +
                              "; N is the number of micro-batches of a step in all processes."});
}

/// Those of a window that a rank trains at the same times as the others: rank, rank + W, and so on.
inline MicroBatches striped_share(World const& world, MicroBatches const& equal) {
  return {.first = static_cast<std::uint64_t>(world.rank),
          .count = equal.count,
          .stride = static_cast<std::uint64_t>(world.size)};
}

/// Those of a window that a rank trains. SettingsError unless each has the same number.
inline MicroBatches equal_share(World const& world, int micro_batches, char const* name,
                                char const* multiple = "a multiple of the number of processes") {
  int const each = micro_batches / world.size;
  if (each * world.size != micro_batches) {
    refuse_share(world, micro_batches, name, "each must have the same number of them", multiple);
  }
  return {.first = static_cast<std::uint64_t>(world.rank * each),
          .count = static_cast<std::uint64_t>(each)};
}

}  // namespace frugal::detail
