// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>

#include <frugal/inline.hpp>

namespace frugal::detail {

/// A matrix of gradients and its factors: [rows, rank] and [columns, rank].
struct LowRank {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t rank = 0;

  /// Of a parameter, as the matrix that lies in its memory: rows are those of the outermost dimension,
  /// which is the first one unless the memory has another order.
  FRUGAL_INLINE static LowRank of(at::Tensor const& parameter, std::int64_t most_columns) {
    if (parameter.dim() == 0 || parameter.numel() == 0) return {};
    std::int64_t outermost = 0;
    if (!parameter.is_contiguous() && parameter.is_non_overlapping_and_dense()) {
      for (std::int64_t i = 1; i < parameter.dim(); ++i) {
        if (parameter.size(i) > 1 && parameter.stride(i) > parameter.stride(outermost))
          outermost = i;
      }
    }
    std::int64_t const rows = parameter.size(outermost);
    std::int64_t const columns = parameter.numel() / rows;
    return {.rows = rows, .columns = columns, .rank = std::min({rows, columns, most_columns})};
  }

  /// Whether the factors are smaller by more than this factor.
  bool pays(double rate) const {
    return static_cast<double>((rows + columns) * rank) * rate <
           static_cast<double>(rows * columns);
  }

  /// Bytes that Wire<PowerSGD<R>> sends for a parameter's gradient.
  FRUGAL_INLINE static double bytes(at::Tensor const& parameter, std::int64_t most_columns,
                                    double rate) {
    auto const whole = static_cast<double>(parameter.nbytes());
    if (parameter.scalar_type() != at::kFloat) return whole;
    LowRank const shape = of(parameter, most_columns);
    if (!shape.pays(rate)) return whole;
    return static_cast<double>((shape.rows + shape.columns) * shape.rank) * sizeof(float);
  }
};

}  // namespace frugal::detail
