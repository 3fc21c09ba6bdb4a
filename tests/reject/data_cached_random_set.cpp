// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: cached() needs samples that are the same in every epoch, and this set draws them by seed and epoch.
#include <frugal/data/cache/cached.hpp>

#include <cstdint>
#include <string>

struct Numbers {
  std::uint64_t size() const { return 4; }
#ifdef FRUGAL_REJECT
  double get(frugal::SampleKey const& key) const { return static_cast<double>(key.epoch); }
#else
  double get(std::uint64_t) const { return 1; }
#endif
  std::string identity() const { return "numbers v1"; }
};
struct Twice {
  static constexpr int version = 1;
  std::string settings() const { return ""; }
  double operator()(double number) const { return 2 * number; }
};

inline auto kept() { return frugal::cached(Numbers{}, Twice{}, {.folder = "cache"}); }
