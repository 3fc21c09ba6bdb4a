// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/loading/load_batch.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE std::vector<std::size_t> numbers_of(std::span<SampleKey const> keys) {
  std::vector<std::size_t> numbers;
  numbers.reserve(keys.size());
  for (SampleKey const& key : keys) numbers.push_back(key.index);
  return numbers;
}

}  // namespace frugal::detail
