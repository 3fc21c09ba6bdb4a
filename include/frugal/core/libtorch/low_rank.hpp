// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace frugal::detail {

/// A matrix of gradients and its factors: [rows, rank] and [columns, rank].
struct LowRank {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t rank = 0;

  /// Of a parameter, as the matrix that lies in its memory: rows are those of the outermost dimension,
  /// which is the first one unless the memory has another order.
  static LowRank of(at::Tensor const& parameter, std::int64_t most_columns);

  /// Whether the factors are smaller by more than this factor.
  bool pays(double rate) const {
    return static_cast<double>((rows + columns) * rank) * rate <
           static_cast<double>(rows * columns);
  }

  /// Bytes that Wire<PowerSGD<R>> sends for a parameter's gradient.
  static double bytes(at::Tensor const& parameter, std::int64_t most_columns, double rate);
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/libtorch/low_rank.ipp>
#endif
