// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/libtorch/low_rank.hpp>

#include <frugal/inline.hpp>

#include <algorithm>

namespace frugal::detail {

FRUGAL_INLINE LowRank LowRank::of(at::Tensor const& parameter, std::int64_t most_columns) {
  if (parameter.dim() == 0 || parameter.numel() == 0) return {};
  std::int64_t outermost = 0;
  if (!parameter.is_contiguous() && parameter.is_non_overlapping_and_dense()) {
    for (std::int64_t i = 1; i < parameter.dim(); ++i) {
      if (parameter.size(i) > 1 && parameter.stride(i) > parameter.stride(outermost)) outermost = i;
    }
  }
  std::int64_t const rows = parameter.size(outermost);
  std::int64_t const columns = parameter.numel() / rows;
  return {.rows = rows, .columns = columns, .rank = std::min({rows, columns, most_columns})};
}

FRUGAL_INLINE double LowRank::bytes(at::Tensor const& parameter, std::int64_t most_columns,
                                    double rate) {
  auto const whole = static_cast<double>(parameter.nbytes());
  if (parameter.scalar_type() != at::kFloat) return whole;
  LowRank const shape = of(parameter, most_columns);
  if (!shape.pays(rate)) return whole;
  return static_cast<double>((shape.rows + shape.columns) * shape.rank) * sizeof(float);
}

}  // namespace frugal::detail
