// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: cached() cannot keep what this transform gives.
#include <frugal/data/cache/cached.hpp>

#include <cstdint>
#include <string>
#include <tuple>

struct Numbers {
  std::uint64_t size() const { return 4; }
  double get(std::uint64_t) const { return 1; }
  std::string identity() const { return "numbers v1"; }
};
struct Named {
  double number = 0;
  std::string name;
#ifndef FRUGAL_REJECT
  static constexpr std::tuple parts{&Named::number, &Named::name};
#endif
};
struct Name {
  static constexpr int version = 1;
  std::string settings() const { return ""; }
  Named operator()(double number) const { return {number, "a"}; }
};

inline auto kept() { return frugal::cached(Numbers{}, Name{}, {.folder = "cache"}); }
