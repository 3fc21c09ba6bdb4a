// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/state/tensor_part.hpp>
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

}  // namespace frugal
