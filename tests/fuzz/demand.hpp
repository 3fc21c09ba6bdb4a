// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <cstdlib>

namespace frugal_fuzz {

/// Ends the program, which libFuzzer reports with the input, unless a property holds.
inline void demand(bool holds, char const* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: does not hold: %s\n", what);
  std::abort();
}

}  // namespace frugal_fuzz
