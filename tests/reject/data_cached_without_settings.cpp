// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: cached() needs the settings of the transform: `std::string settings() const`, a text with all that its results depend on. Empty if there are none.
#include <frugal/data/cache/cached.hpp>

#include <cstdint>
#include <string>

struct Numbers {
  std::uint64_t size() const { return 4; }
  double get(std::uint64_t) const { return 1; }
  std::string identity() const { return "numbers v1"; }
};
struct Times {
  static constexpr int version = 1;
  double factor = 2;
#ifndef FRUGAL_REJECT
  std::string settings() const { return std::to_string(factor); }
#endif
  double operator()(double number) const { return factor * number; }
};

inline auto kept() { return frugal::cached(Numbers{}, Times{}, {.folder = "cache"}); }
