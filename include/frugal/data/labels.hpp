// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <concepts>
#include <cstddef>
#include <cstdint>

#include <frugal/inline.hpp>

namespace frugal {

/// Cross entropy and metrics ignore class labels of this value, as LibTorch does. The metric
/// IgnoreIndex ignores another value.
inline constexpr std::int64_t ignored_label = -100;

/// A batch that has counted its labels that are not ignored: `counted()` is a number on the host,
/// so that counting does not wait for a device.
template <class B>
concept CountsLabels = requires(B const& batch) {
  { batch.counted() } -> std::convertible_to<std::int64_t>;
};

namespace detail {

/// The number of elements of a tensor in host memory for which `counts(element)` is true. Reads a
/// dense tensor without an operator. `Element` is its type.
template <class Element, class Counts>
std::int64_t count_on_host(at::Tensor const& tensor, Counts const& counts) {
  at::Tensor const dense = tensor.is_non_overlapping_and_dense() ? tensor : tensor.contiguous();
  auto const* const element = static_cast<Element const*>(dense.const_data_ptr());
  std::int64_t const all = dense.numel();
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < all; ++i) count += static_cast<std::int64_t>(counts(element[i]));
  return count;
}

/// The number of class labels that are not -100. Waits for the device if they are on one.
FRUGAL_INLINE std::int64_t count_labels_now(at::Tensor const& labels) {
  if (labels.is_cpu() && labels.scalar_type() == at::kLong) {
    return count_on_host<std::int64_t>(labels, [](auto each) { return each != ignored_label; });
  }
  return labels.ne(ignored_label).sum().item<std::int64_t>();
}

/// The number of true elements of a bool mask. Waits for the device if it is on one.
FRUGAL_INLINE std::int64_t count_true_now(at::Tensor const& mask) {
  if (mask.is_cpu()) return count_on_host<bool>(mask, [](bool each) { return each; });
  return mask.sum().item<std::int64_t>();
}

/// Whether an element is NaN. Waits for the device if the tensor is on one.
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

}  // namespace detail
}  // namespace frugal
