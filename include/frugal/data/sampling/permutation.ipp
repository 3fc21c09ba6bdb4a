// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/sampling/permutation.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <string>

namespace frugal {

FRUGAL_INLINE Permutation::Permutation(std::uint64_t seed, std::uint64_t epoch, std::uint64_t size)
    : size_(size) {
  if (size > std::uint64_t{1} << 62) {
    throw SettingsError({.what = "a permutation of " + std::to_string(size) + " samples",
                         .where = "",
                         .why = "orders are computed for at most 2^62 samples",
                         .fix = "Split the data."});
  }
  if (size == 0) return;
  // An even a: an odd cycle of Z_a then occurs, and odd permutations are reached too.
  std::uint64_t a = detail::ceil_sqrt(size);
  a += a & 1U;
  std::uint64_t const b = (size - 1) / a + 1;
  std::uint64_t const key =
      detail::mix64(detail::mix64(seed + 0x9e3779b97f4a7c15U) ^ epoch * 0xd1342543de82ef95U);
  // Measured: 6 rounds leave a pattern in the differences of 1,024 samples, 8 do not; halves of a
  // few values mix slowly and need 16. Two and four more are the margin.
  int const rounds = size < 512 ? 20 : 10;
  narrow_ = a <= detail::Feistel<std::uint16_t, std::uint32_t>::max_half;
  if (narrow_) {
    small_ = {a, b, key, rounds};
  } else {
    large_ = {a, b, key, rounds};
  }
}

}  // namespace frugal
