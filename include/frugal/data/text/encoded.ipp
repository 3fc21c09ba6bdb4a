// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/text/encoded.hpp>
#include <frugal/inline.hpp>

namespace frugal {

FRUGAL_INLINE void Encoded::push(std::int32_t id, std::int32_t type, TextSpan span) {
  ids.push_back(id);
  types.push_back(type);
  spans.push_back(span);
}

FRUGAL_INLINE void Encoded::append(Encoded const& more) {
  ids.insert(ids.end(), more.ids.begin(), more.ids.end());
  types.insert(types.end(), more.types.begin(), more.types.end());
  spans.insert(spans.end(), more.spans.begin(), more.spans.end());
}

FRUGAL_INLINE void Encoded::resize(std::size_t count) {
  ids.resize(count);
  types.resize(count);
  spans.resize(count);
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE std::pair<std::size_t, std::size_t> longest_first(std::size_t first,
                                                                std::size_t second,
                                                                std::size_t most) {
  if (first <= most && second <= most - first) return {first, second};
  bool const swapped = first > second;
  std::size_t less = std::min(first, second);
  std::size_t more = less > most ? less : std::max(less, most - less);
  if (less > most - std::min(most, more)) {
    less = most / 2;
    more = less + most % 2;
  }
  return swapped ? std::pair{more, less} : std::pair{less, more};
}

}  // namespace frugal::detail
