// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: cached() needs a transform of one sample, whose operator() is const: several threads call it.
#include <frugal/data/cache/cached.hpp>

#include <cstdint>
#include <string>

struct Numbers {
  std::uint64_t size() const { return 4; }
  double get(std::uint64_t) const { return 1; }
  std::string identity() const { return "numbers v1"; }
};
struct Count {
  static constexpr int version = 1;
  std::string settings() const { return ""; }
#ifdef FRUGAL_REJECT
  double operator()(double number) { return number + ++calls; }
  int calls = 0;
#else
  double operator()(double number) const { return number; }
#endif
};

inline auto kept() { return frugal::cached(Numbers{}, Count{}, {.folder = "cache"}); }
