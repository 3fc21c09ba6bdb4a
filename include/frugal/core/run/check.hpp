// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include <frugal/inline.hpp>

namespace frugal {

/// One verdict of a dry run; printed as one line.
struct [[nodiscard]] Check {
  std::string name;
  bool passed = false;
  std::string detail;
};

/// Prints one line per check: "dry run: pass  finite loss: 2.31, 2.29".
FRUGAL_INLINE void print(std::ostream& out, std::vector<Check> const& checks) {
  for (Check const& check : checks) {
    out << "dry run: " << (check.passed ? "pass" : "FAIL") << "  " << check.name << ": "
        << check.detail << '\n';
  }
}

[[nodiscard]] FRUGAL_INLINE bool all_passed(std::vector<Check> const& checks) {
  for (Check const& check : checks) {
    if (!check.passed) return false;
  }
  return !checks.empty();
}

}  // namespace frugal
