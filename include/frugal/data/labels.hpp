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

/// The number of elements of a tensor in host memory that are not `left_out`. Reads a dense tensor
/// without an operator. `Element` is its type.
template <class Element>
std::int64_t count_on_host(at::Tensor const& tensor, Element left_out) {
  at::Tensor const dense = tensor.is_non_overlapping_and_dense() ? tensor : tensor.contiguous();
  auto const* const element = static_cast<Element const*>(dense.const_data_ptr());
  std::int64_t const all = dense.numel();
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < all; ++i) count += static_cast<std::int64_t>(element[i] != left_out);
  return count;
}

/// The number of class labels that are not -100. Waits for the device if they are on one.
FRUGAL_INLINE std::int64_t count_labels_now(at::Tensor const& labels) {
  if (labels.is_cpu() && labels.scalar_type() == at::kLong)
    return count_on_host(labels, ignored_label);
  return labels.ne(ignored_label).sum().item<std::int64_t>();
}

/// The number of true elements of a bool mask. Waits for the device if it is on one.
FRUGAL_INLINE std::int64_t count_true_now(at::Tensor const& mask) {
  if (mask.is_cpu()) return count_on_host(mask, false);
  return mask.sum().item<std::int64_t>();
}

}  // namespace detail
}  // namespace frugal
