// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples.
#pragma once

#include <frugal/data/batch.hpp>
#include <frugal/inline.hpp>

#include <ATen/ATen.h>

#include <cstdint>

namespace frugal::detail {

/// The sum of an int64 tensor on the host: a loop, so that a step dispatches no operator for it.
FRUGAL_INLINE std::int64_t host_sum(at::Tensor const& numbers) {
  auto const* const number = static_cast<std::int64_t const*>(numbers.const_data_ptr());
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < numbers.numel(); ++i) sum += number[i];
  return sum;
}

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
