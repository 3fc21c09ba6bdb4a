// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples.
#pragma once

#include <frugal/core/source/batch.hpp>

#include <ATen/ATen.h>

#include <cstdint>

namespace frugal::detail {

/// The sum of an int64 tensor on the host: a loop, so that a step dispatches no operator for it.
std::int64_t host_sum(at::Tensor const& numbers);

/// A part of a batch whose `lengths` and `counts` [B] stay on the host, so that its each_tensor
/// does not name them: the part has that part of both.
template <class B>
B narrow_with_counts(B const& batch, std::int64_t begin, std::int64_t count) {
  B part = batch_defaults<B>::narrow(batch, begin, count);
  part.lengths = batch.lengths.narrow(0, begin, count);
  part.counts = batch.counts.narrow(0, begin, count);
  return part;
}

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/data/host_counts.ipp>
#endif
