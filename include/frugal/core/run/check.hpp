// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace frugal {

/// One verdict of a dry run; printed as one line.
struct [[nodiscard]] Check {
  std::string name;
  bool passed = false;
  std::string detail;
};

/// Prints one line per check: "dry run: pass  finite loss: 2.31, 2.29".
void print(std::ostream& out, std::vector<Check> const& checks);

[[nodiscard]] bool all_passed(std::vector<Check> const& checks);

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/check.ipp>
#endif
