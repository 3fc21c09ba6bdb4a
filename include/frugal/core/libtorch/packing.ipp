// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/libtorch/packing.hpp>

#include <frugal/inline.hpp>

#include <cstring>
#include <numeric>

namespace frugal::detail {

FRUGAL_INLINE Layout::Layout(at::Tensor const& tensor)
    : offset(tensor.storage_offset()),
      repeated(tensor.sizes().vec()),
      once(repeated),
      order(repeated.size()) {
  Sizes const strides = tensor.strides().vec();
  std::iota(order.begin(), order.end(), std::int64_t{0});
  // An expanded dimension repeats one element.
  for (std::size_t i = 0; i < once.size(); ++i) {
    if (strides[i] == 0) once[i] = 1;
  }
  std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    auto const stride_of = [&](std::int64_t i) { return strides[static_cast<std::size_t>(i)]; };
    return stride_of(a) != stride_of(b) ? stride_of(a) > stride_of(b) : a < b;
  });
  for (std::int64_t const dimension : order) {
    std::int64_t const size = once[static_cast<std::size_t>(dimension)];
    std::int64_t const stride = strides[static_cast<std::size_t>(dimension)];
    if (size == 1) continue;
    if (!lengths.empty() && steps.back() == size * stride) {
      lengths.back() *= size;
      steps.back() = stride;
    } else {
      lengths.push_back(size);
      steps.push_back(stride);
    }
  }
}

}  // namespace frugal::detail
