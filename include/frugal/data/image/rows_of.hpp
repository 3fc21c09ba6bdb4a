// SPDX-License-Identifier: Apache-2.0
// Shapes: B images, ... whatever one image has.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

namespace frugal::detail {

/// Numbers of rows, or factors of them, as a tensor on the device of `like`.
template <class Number>
at::Tensor on_device_of(at::Tensor const& like, std::vector<Number> const& numbers) {
  return at::tensor(numbers).to(like.device());
}

/// The batch with `change(some)` in place of the given rows. The batch itself stays as it is, and
/// comes back as it is if there are no rows.
template <class Change>
at::Tensor change_rows(at::Tensor const& images, std::vector<std::int64_t> const& rows,
                       Change&& change) {
  if (rows.empty()) return images;
  if (static_cast<std::int64_t>(rows.size()) == images.size(0)) return change(images);
  at::Tensor const which = on_device_of(images, rows);
  return images.index_copy(0, which, change(images.index_select(0, which)));
}

}  // namespace frugal::detail
