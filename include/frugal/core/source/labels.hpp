// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <concepts>
#include <cstdint>

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
std::int64_t count_labels_now(at::Tensor const& labels);

/// The number of true elements of a bool mask. Waits for the device if it is on one.
std::int64_t count_true_now(at::Tensor const& mask);

/// LabelError if a label in host memory is not from 0 to `most`, whole or a share. Reads int64, float and double without
/// an operator; labels on a device are not read.
void require_label_range(at::Tensor const& labels, std::int64_t most, char const* objective);

/// Whether an element is NaN. Waits for the device if the tensor is on one.
bool has_nan_now(at::Tensor const& values);

}  // namespace detail
}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/source/labels.ipp>
#endif
