// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: cached() would freeze the first draw of this random transform. Keep several variants with offline(set, augment, settings), or apply it behind the cache.
#include <frugal/data/cache/cached.hpp>

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
  double operator()(double number, frugal::SampleKey const& key) const {
    return number + static_cast<double>(key.epoch);
  }
#else
  double operator()(double number) const { return number; }
#endif
};

inline auto kept() { return frugal::cached(Numbers{}, Jitter{}, {.folder = "cache"}); }
