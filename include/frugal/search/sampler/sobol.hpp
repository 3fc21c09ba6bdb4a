// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <frugal/data/sampling/permutation.hpp>
#include <frugal/search/sampler/sampler.hpp>
#include <frugal/search/trials/candidate.hpp>
#include <frugal/search/trials/history.hpp>

namespace frugal {

namespace detail {

/// LibTorch's Sobol engine has numbers of 30 bits, and direction numbers for so many dimensions.
inline constexpr std::size_t sobol_bits = 30, sobol_dimensions = 21201;

/// Point number `index` of LibTorch's Sobol sequence, in units of 2^-30.
///
/// Source  torch/quasirandom.py, which comes to it step by step; Antonov and Saleev, "An economic method of
///         computing LP-tau sequences" (1979) for the Gray code, by which it is the exclusive or of those
///         direction numbers whose bits of index ^ index / 2 are set.
std::vector<std::uint32_t> sobol_point(std::size_t dimensions, std::size_t index);

/// A number of a point after a random linear map of its bits and a random shift: of the result, each bit is
/// that of the number, changed by random bits and by a random choice of the number's higher bits.
///
/// Source  Matousek, "On the L2-discrepancy for anchored boxes" (1998); the scramble of torch/quasirandom.py,
///         with bits of Draw.
std::uint32_t scrambled(std::uint32_t number, Draw& draw);

}  // namespace detail

/// Quasi-random search: trial n is point n of a Sobol sequence, whose points cover the space more evenly than
/// random ones. One dimension chooses the recipe, and each setting has one of its own, so that a candidate
/// uses those of its recipe's settings. It looks at no history, as RandomSampler.
///
/// `scramble` shuffles the points by a random map that keeps how evenly they lie and depends on the seed
/// alone. Without it the sequence is the same for every seed, and its first point has the lowest values.
///
/// Cost    LibTorch's table of direction numbers is expanded for each trial: 30 numbers for each dimension.
/// Errors  SettingsError for more than 21200 settings, or 2^30 trials.
/// Source  Sobol, "On the distribution of points in a cube and the approximate evaluation of integrals"
///         (1967); direction numbers of Joe and Kuo (2008). LibTorch's, without its generators.
struct SobolSampler {
  static constexpr std::string_view name = "sobol";
  static constexpr bool learns = false;

  bool scramble = true;

  Candidate suggest(SearchDomain const& domain, SearchHistory const&, std::size_t trial,
                    std::uint64_t seed) const;

  void require() const {}
  /// For the journal: searches whose samplers differ are not the same.
  std::string text() const;
  std::size_t generation() const { return 0; }

  friend bool operator==(SobolSampler const&, SobolSampler const&) = default;
};

static_assert(SearchSampler<SobolSampler>);

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/search/sampler/sobol.ipp>
#endif
