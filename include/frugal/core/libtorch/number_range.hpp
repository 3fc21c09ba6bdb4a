// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <optional>

namespace frugal::detail {

/// The largest number of a floating-point type.
double largest_number(at::ScalarType type);

/// Whether stored numbers of a type may become those of another: floating-point types are rounded to each
/// other, integers only become wider. Numbers of 8 bits are meant to be multiplied by scales, which are
/// tensors of their own.
bool convertible(at::ScalarType from, at::ScalarType to);

/// The largest magnitude of a tensor's finite numbers, if it is beyond those of `type`, where it would
/// become infinite, or the largest of them if it is that near. Reads the tensor only if its own type has such numbers.
std::optional<double> beyond_range(at::Tensor const& tensor, at::ScalarType type);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/libtorch/number_range.ipp>
#endif
