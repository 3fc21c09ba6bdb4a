// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/host_counts.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE std::int64_t host_sum(at::Tensor const& numbers) {
  auto const* const number = static_cast<std::int64_t const*>(numbers.const_data_ptr());
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < numbers.numel(); ++i) sum += number[i];
  return sum;
}

}  // namespace frugal::detail
