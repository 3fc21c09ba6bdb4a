// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: a set of samples is not a source of batches. Call fit(loader(set, {.batch = 64})).
#include <frugal/data/loading/loader.hpp>
#include <frugal/data/refused_source.hpp>

struct Numbers {
  std::uint64_t size() const { return 4; }
  at::Tensor get(std::uint64_t) const { return at::zeros({1}); }
};

#ifdef FRUGAL_REJECT
inline auto gives() { return frugal::as_source(Numbers{}); }
#else
inline auto gives() { return frugal::as_source(frugal::loader(Numbers{}, {.batch = 2})); }
#endif
