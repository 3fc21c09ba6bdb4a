// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/source/labels.hpp>

#include <frugal/inline.hpp>

#include <cstddef>

namespace frugal::detail {

FRUGAL_INLINE std::int64_t count_labels_now(at::Tensor const& labels) {
  if (labels.is_cpu() && labels.scalar_type() == at::kLong) {
    return count_on_host<std::int64_t>(labels, [](auto each) { return each != ignored_label; });
  }
  return labels.ne(ignored_label).sum().item<std::int64_t>();
}

FRUGAL_INLINE std::int64_t count_true_now(at::Tensor const& mask) {
  if (mask.is_cpu()) return count_on_host<bool>(mask, [](bool each) { return each; });
  return mask.sum().item<std::int64_t>();
}

FRUGAL_INLINE bool has_nan_now(at::Tensor const& values) {
  // NaN is the value that differs from itself.
  auto const is_nan = [](auto each) { return each != each; };
  if (values.is_cpu() && values.scalar_type() == at::kFloat) {
    return count_on_host<float>(values, is_nan) != 0;
  }
  if (values.is_cpu() && values.scalar_type() == at::kDouble) {
    return count_on_host<double>(values, is_nan) != 0;
  }
  return values.isnan().any().item<bool>();
}

}  // namespace frugal::detail
