// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: cached() needs the version of the transform: `static constexpr int version = 1;`, raised when its code gives something else.
#include <frugal/data/cache/cached.hpp>

#include <cstdint>
#include <string>

struct Numbers {
  std::uint64_t size() const { return 4; }
  double get(std::uint64_t) const { return 1; }
  std::string identity() const { return "numbers v1"; }
};
struct Twice {
#ifndef FRUGAL_REJECT
  static constexpr int version = 1;
#endif
  std::string settings() const { return ""; }
  double operator()(double number) const { return 2 * number; }
};

inline auto kept() { return frugal::cached(Numbers{}, Twice{}, {.folder = "cache"}); }
