// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/state/tensor_places.hpp>

#include <frugal/inline.hpp>

#include <cstddef>

namespace frugal {

FRUGAL_INLINE PlacedTensor const* TensorPlaces::find(std::string_view path) const {
  PlacedTensor const* of_all = nullptr;
  for (std::size_t begin = 0; !tensors.empty() && begin <= path.size();) {
    std::size_t const end = std::min(path.find('/', begin), path.size());
    PlacedTensor const* const found = named(path.substr(begin, end - begin));
    if (found != nullptr && found->place != Place::everywhere) return found;
    if (of_all == nullptr) of_all = found;
    begin = end + 1;
  }
  return of_all;
}

FRUGAL_INLINE PlacedTensor const* TensorPlaces::named(std::string_view word) const {
  while (true) {
    auto const found = tensors.find(word);
    if (found != tensors.end()) return &found->second;
    std::size_t const point = word.rfind('.');
    bool const is_item = point != std::string_view::npos && point + 1 < word.size() &&
                         word.find_first_not_of("0123456789", point + 1) == std::string_view::npos;
    if (!is_item) return nullptr;
    word = word.substr(0, point);
  }
}

}  // namespace frugal
