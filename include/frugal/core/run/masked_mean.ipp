// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/masked_mean.hpp>

#include <frugal/core/source/labels.hpp>
#include <frugal/core/source/shape_text.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>

namespace frugal {

FRUGAL_INLINE Loss masked_mean(at::Tensor const& values, at::Tensor const& mask,
                               std::optional<std::int64_t> counted) {
  bool const fits = mask.defined() && values.defined() && mask.scalar_type() == at::kBool &&
                    mask.dim() <= values.dim() &&
                    mask.sizes() == values.sizes().slice(0, static_cast<std::size_t>(mask.dim()));
  if (!fits) {
    throw ShapeError({.what = "the mask does not fit the values",
                      .where = "masked_mean",
                      .why = "values are " + detail::shape_text(values) + ", the mask is " +
                             detail::shape_text(mask),
                      .fix = "Values are [B, T, ...], the mask [B, T] of bool."});
  }
  std::int64_t const positions = counted ? *counted : detail::count_true_now(mask);
  std::int64_t const each = values.numel() / std::max<std::int64_t>(mask.numel(), 1);
  at::Tensor whole = mask;
  for (std::int64_t d = mask.dim(); d < values.dim(); ++d) whole = whole.unsqueeze(-1);
  at::Tensor const sum = at::where(whole, values, at::Scalar(0)).sum();
  return {.value = sum.div(static_cast<double>(std::max<std::int64_t>(positions * each, 1))),
          .weight = static_cast<double>(positions)};
}

}  // namespace frugal
