// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/state/tensor_part.hpp>

#include <cstddef>

#include <frugal/inline.hpp>

namespace frugal {

FRUGAL_INLINE TensorPart TensorPart::of(at::Tensor const& whole, std::int64_t first,
                                        std::int64_t count, std::size_t parameter) {
  return {.sizes = whole.sizes().vec(),
          .strides = whole.strides().vec(),
          .first = first,
          .count = count,
          .parameter = parameter};
}

FRUGAL_INLINE std::int64_t TensorPart::whole_count() const {
  std::int64_t all = 1;
  for (std::int64_t const size : sizes) all *= size;
  return all;
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE at::Tensor in_memory_order(at::Tensor const& tensor) {
  return tensor.as_strided({tensor.numel()}, {1});
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE void HeldPart::copy_from(at::Tensor const& whole) const {
  at::Tensor const laid_out =
      at::empty_strided(which.sizes, which.strides, whole.options()).copy_(whole);
  at::Tensor(mine).copy_(detail::in_memory_order(laid_out).narrow(0, which.first, which.count));
}

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
