// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <random>
#include <tuple>

#include <frugal/core/libtorch/low_rank.hpp>

namespace frugal::detail {

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
