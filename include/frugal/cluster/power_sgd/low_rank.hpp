// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <tuple>

namespace frugal::detail {

/// A matrix of gradients and its factors: [rows, rank] and [columns, rank].
struct LowRank {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t rank = 0;

  /// Of a parameter, as the matrix that lies in its memory: rows are those of the outermost dimension,
  /// which is the first one unless the memory has another order.
  static LowRank of(at::Tensor const& parameter, std::int64_t most_columns) {
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
};

/// Makes the columns of a matrix with at least as many rows orthonormal: by the Gram-Schmidt process
/// where there are one or two, as PyTorch's powerSGD_hook, otherwise by Householder's. A column of
/// zeros stays one in the Gram-Schmidt process, where PyTorch divides it by zero.
inline void orthogonalize(at::Tensor const& columns, double epsilon) {
  std::int64_t const count = columns.size(1);
  if (count > 2) {
    columns.copy_(std::get<0>(at::linalg_qr(columns)));
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    at::Tensor const column = columns.narrow(1, i, 1);
    at::Tensor const norm = at::linalg_vector_norm(column);
    column.div_(epsilon == 0 ? norm.masked_fill(norm.eq(0), 1) : norm + epsilon);
    if (i + 1 == count) continue;
    at::Tensor const rest = columns.narrow(1, i + 1, count - i - 1);
    rest.sub_((column * rest).sum(0, /*keepdim=*/true) * column);
  }
}

/// The seeds that PyTorch's powerSGD_hook draws: numpy.random.RandomState(seed).randint(10**9), which
/// takes 30 bits of each number of a Mersenne twister until they are in range.
class FactorSeeds {
 public:
  explicit FactorSeeds(std::uint32_t seed) : engine_(seed) {}
  std::uint64_t next() {
    constexpr std::uint64_t bits = (std::uint64_t{1} << 30) - 1;
    for (;;) {
      std::uint64_t const value = engine_() & bits;
      if (value < 1'000'000'000) return value;
    }
  }

 private:
  std::mt19937 engine_;
};

}  // namespace frugal::detail
