// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace frugal {

/// A class label of this value is none: cross entropy and metrics leave it out, as LibTorch does.
/// The metric IgnoreIndex has another value left out.
inline constexpr std::int64_t ignored_label = -100;

/// A batch that knows how many of its labels count: `counted()` is a number of the host, so that
/// nobody waits for a device to count them.
template <class B>
concept CountsLabels = requires(B const& batch) {
  { batch.counted() } -> std::convertible_to<std::int64_t>;
};

namespace detail {

/// How many elements of a tensor in host memory are not `left_out`, read without an operator where
/// the tensor is dense. `Element` is its type.
template <class Element>
std::int64_t count_on_host(at::Tensor const& tensor, Element left_out) {
  at::Tensor const dense = tensor.is_non_overlapping_and_dense() ? tensor : tensor.contiguous();
  auto const* const element = static_cast<Element const*>(dense.const_data_ptr());
  std::int64_t const all = dense.numel();
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < all; ++i) count += static_cast<std::int64_t>(element[i] != left_out);
  return count;
}

/// Class labels that are not -100. Waits for the device where they are on one.
inline std::int64_t count_labels_now(at::Tensor const& labels) {
  if (labels.is_cpu() && labels.scalar_type() == at::kLong)
    return count_on_host(labels, ignored_label);
  return labels.ne(ignored_label).sum().item<std::int64_t>();
}

/// True elements of a mask of bool. Waits for the device where it is on one.
inline std::int64_t count_true_now(at::Tensor const& mask) {
  if (mask.is_cpu()) return count_on_host(mask, false);
  return mask.sum().item<std::int64_t>();
}

}  // namespace detail
}  // namespace frugal
