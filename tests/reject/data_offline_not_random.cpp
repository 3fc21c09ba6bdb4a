// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: offline() keeps variants of a random transform, and this one takes no SampleKey. Keep its one result with cached(set, transform, settings).
#include <frugal/data/cache/offline.hpp>

#include <cstdint>
#include <string>

struct Numbers {
  std::uint64_t size() const { return 4; }
  double get(std::uint64_t) const { return 1; }
  std::string identity() const { return "numbers v1"; }
};
struct Jitter {
  static constexpr int version = 1;
  std::string settings() const { return ""; }
#ifdef FRUGAL_REJECT
  double operator()(double number) const { return number; }
#else
  double operator()(double number, frugal::SampleKey const& key) const {
    return number + static_cast<double>(key.epoch);
  }
#endif
};

inline auto kept() { return frugal::offline(Numbers{}, Jitter{}, {.cache = {.folder = "cache"}}); }
