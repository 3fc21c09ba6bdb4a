// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <xxhash.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace frugal {

/// Locality-sensitive hashing of MinHash signatures: two texts are candidates if all hashes of at
/// least one band are equal.
///
/// Source  Leskovec, Rajaraman, Ullman, "Mining of Massive Datasets", section 3.4.
struct Bands {
  std::uint32_t bands = 20;  ///< at least 1
  std::uint32_t rows = 13;   ///< hashes of a band, at least 1

  /// Hashes of a signature.
  constexpr std::uint32_t hashes() const { return bands * rows; }

  /// How likely two texts of this similarity become candidates: 1 - (1 - s^rows)^bands, the
  /// S-curve.
  double recall(double similarity) const {
    return 1 - std::pow(1 - std::pow(similarity, rows), bands);
  }

  /// What two texts share if they share the band: a hash of its rows and its number.
  std::uint64_t key(std::span<std::uint32_t const> signature, std::uint32_t band) const {
    auto const of_band = signature.subspan(std::size_t{band} * rows, rows);
    return XXH3_64bits_withSeed(of_band.data(), of_band.size_bytes(), band);
  }
};

}  // namespace frugal
