// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/source/sample_set.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE void require_sample(std::uint64_t index, std::uint64_t size, std::string_view set) {
  if (index < size) return;
  throw DataError({.what = "a sample past the end was asked for",
                   .where = "sample " + std::to_string(index) + " of " + std::string(set),
                   .why = "it has " + std::to_string(size),
                   .fix = "Ask for one below size()."});
}

}  // namespace frugal::detail
