// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: the collate function cannot be called with what get_batch of this data set gives. It takes the samples of a batch: `[](std::vector<Sample> const& samples) { return batch; }`.
#include <frugal/data/dataset.hpp>

#include <vector>

struct CatOf {
#ifdef FRUGAL_REJECT
  // One sample, and not those of a batch.
  at::Tensor operator()(at::Tensor const& sample) const { return sample; }
#else
  at::Tensor operator()(std::vector<at::Tensor> const& samples) const { return at::cat(samples); }
#endif
};

inline auto joined(std::vector<at::Tensor> const& samples) {
  return frugal::from_samples(samples, {.batch = 4}, CatOf{});
}
