// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Offline keeps 1 variant of a sample or more.
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
  double operator()(double number, frugal::SampleKey const& key) const {
    return number + static_cast<double>(key.epoch);
  }
};

#ifdef FRUGAL_REJECT
constexpr std::uint64_t variants = 0;
#else
constexpr std::uint64_t variants = 2;
#endif

inline auto kept() {
  return frugal::offline<variants>(Numbers{}, Jitter{}, {.cache = {.folder = "cache"}});
}
