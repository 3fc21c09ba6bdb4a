// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/check.hpp>
#include <frugal/inline.hpp>

namespace frugal {

FRUGAL_INLINE void print(std::ostream& out, std::vector<Check> const& checks) {
  for (Check const& check : checks) {
    out << "dry run: " << (check.passed ? "pass" : "FAIL") << "  " << check.name << ": "
        << check.detail << '\n';
  }
}

FRUGAL_INLINE bool all_passed(std::vector<Check> const& checks) {
  for (Check const& check : checks) {
    if (!check.passed) return false;
  }
  return !checks.empty();
}

}  // namespace frugal
