// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: loader needs a set that is read by index, and this type has no `get(i) const` that takes a std::uint64_t or a SampleKey. It is const because several workers call it.
#include <frugal/data/loading/loader.hpp>

struct Cached {
  std::uint64_t size() const { return 4; }
#ifdef FRUGAL_REJECT
  at::Tensor get(std::uint64_t) { return at::zeros({1}); }
#else
  at::Tensor get(std::uint64_t) const { return at::zeros({1}); }
#endif
};

inline auto reads() { return frugal::loader(Cached{}, {.batch = 2}); }
