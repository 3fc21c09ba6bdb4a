// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: offline() needs the version and the settings of the transform:
#include <frugal/data/cache/offline.hpp>

#include <cstdint>
#include <string>

struct Numbers {
  std::uint64_t size() const { return 4; }
  double get(std::uint64_t) const { return 1; }
  std::string identity() const { return "numbers v1"; }
};
struct Jitter {
#ifndef FRUGAL_REJECT
  static constexpr int version = 1;
  std::string settings() const { return ""; }
#endif
  double operator()(double number, frugal::SampleKey const& key) const {
    return number + static_cast<double>(key.epoch);
  }
};

inline auto kept() { return frugal::offline(Numbers{}, Jitter{}, {.cache = {.folder = "cache"}}); }
