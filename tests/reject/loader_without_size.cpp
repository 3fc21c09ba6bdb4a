// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: loader needs a set of samples, and this type has no `std::uint64_t size() const`. A torch::data data set goes to from_dataset; a Source is read ahead by Prefetch.
#include <frugal/data/loading/loader.hpp>

struct Unsized {
  at::Tensor get(std::uint64_t) const { return at::zeros({1}); }
};
struct Sized : Unsized {
  std::uint64_t size() const { return 4; }
};

#ifdef FRUGAL_REJECT
inline auto loads() { return frugal::loader(Unsized{}, {.batch = 2}); }
#else
inline auto loads() { return frugal::loader(Sized{}, {.batch = 2}); }
#endif
