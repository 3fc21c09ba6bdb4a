// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: cached() needs identity() of the set: a text that changes when its content may have, such as a hash, or paths with sizes and times.
#include <frugal/data/cache/cached.hpp>

#include <cstdint>
#include <string>

struct Numbers {
  std::uint64_t size() const { return 4; }
  double get(std::uint64_t) const { return 1; }
#ifndef FRUGAL_REJECT
  std::string identity() const { return "numbers v1"; }
#endif
};
struct Twice {
  static constexpr int version = 1;
  std::string settings() const { return ""; }
  double operator()(double number) const { return 2 * number; }
};

inline auto kept() { return frugal::cached(Numbers{}, Twice{}, {.folder = "cache"}); }
