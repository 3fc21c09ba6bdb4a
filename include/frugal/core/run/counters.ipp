// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/counters.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <string>

namespace frugal::detail {

FRUGAL_INLINE std::uint64_t require_count(std::int64_t given, char const* what) {
  if (given >= 1) return static_cast<std::uint64_t>(given);
  throw SettingsError({.what = "the number is " + std::to_string(given),
                       .where = what,
                       .why = "it counts at least one",
                       .fix = "Give 1 or more."});
}

}  // namespace frugal::detail
