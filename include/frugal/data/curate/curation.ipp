// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/curate/curation.hpp>
#include <frugal/inline.hpp>

namespace frugal {

FRUGAL_INLINE std::uint64_t Curation::removed_bytes() const {
  std::uint64_t sum = 0;
  for (Removed const& each : removed) sum += each.bytes;
  return sum;
}

FRUGAL_INLINE std::uint64_t Curation::copies() const {
  std::uint64_t count = 0;
  for (Removed const& each : removed) count += each.copy;
  return count;
}

FRUGAL_INLINE std::optional<double> Curation::dollars_per_epoch() const {
  double const seconds = price.seconds_per_sample * static_cast<double>(removed.size()) +
                         price.seconds_per_byte * static_cast<double>(removed_bytes());
  if (!(price.per_hour > 0) || !(price.seconds_per_sample > 0 || price.seconds_per_byte > 0)) {
    return std::nullopt;
  }
  return seconds / 3600 * price.per_hour;
}

}  // namespace frugal
