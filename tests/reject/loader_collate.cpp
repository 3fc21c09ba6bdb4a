// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: the collate function of this loader cannot be called with the samples of its set. It is const and takes those of a batch: `[](std::vector<Sample> samples) { return batch; }`.
#include <frugal/data/loading/loader.hpp>

#include <string>

struct Lines {
  std::uint64_t size() const { return 4; }
#ifdef FRUGAL_REJECT
  // Stack makes no tensor of text.
  std::string get(std::uint64_t) const { return "a line"; }
#else
  at::Tensor get(std::uint64_t) const { return at::zeros({1}); }
#endif
};

inline auto stacks() { return frugal::loader(Lines{}, {.batch = 2}); }
