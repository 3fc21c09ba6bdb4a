// SPDX-License-Identifier: Apache-2.0
// The best of many trials is partly the luckiest: its value is better than the same settings reach again. So
// finalists are repeated with other seeds, and only these repeats, which nothing has selected, say what a
// finalist is worth.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <frugal/search/results/results.hpp>

namespace frugal {

/// Mean and standard deviation of some values.
struct SeedSpread {
  std::size_t count = 0;
  double mean = 0;
  /// Of one seed from the next, with n - 1; nothing for fewer than two values.
  std::optional<double> deviation{};

  /// The standard error of the mean.
  std::optional<double> error() const {
    if (!deviation) return std::nullopt;
    return *deviation / std::sqrt(static_cast<double>(count));
  }

  /// Nothing for no values.
  static std::optional<SeedSpread> of(std::vector<double> const& values);
};

/// A trial and its repeats with other seeds. Values have their own sign.
struct OverSeeds {
  struct Objective {
    std::optional<double> own{};        ///< of the trial that the search has selected
    std::optional<SeedSpread> fresh{};  ///< of its repeats alone: unbiased
    std::optional<SeedSpread> all{};    ///< of the trial and its repeats
    /// By how much the search's own value is better than the mean of the repeats; below 0 if it is worse.
    std::optional<double> flattered_by{};
  };

  std::size_t trial = 0;
  std::vector<std::size_t> repeats{};
  std::size_t running = 0;  ///< repeats that are not over: they do not count yet
  std::size_t lost =
      0;  ///< repeats that failed, or whose value is not a number: means are without them
  std::vector<Objective> objectives{};
};

/// The values of one trial over seeds; without repeats its own value alone.
OverSeeds over_seeds(SearchResults const& of, std::size_t trial);

/// Of the trials that have repeats, the best mean over fresh seeds first, of the objective that names the winner.
std::vector<OverSeeds> finalists_over_seeds(SearchResults const& of);

namespace detail {

/// "0.125 +- 0.002"; the mean alone of one seed.
std::string seed_spread_text(SeedSpread const& of, std::string const& plus_minus = "+-");

/// How the search's own value compares with fresh seeds, as a sentence; empty without repeats.
std::string flattery_text(SearchResults const& of, OverSeeds const& known,
                          std::size_t objective = 0);

/// "2 not over, 1 without a value", of repeats; empty if all count.
std::string missing_repeats_text(OverSeeds const& known);

}  // namespace detail

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/search/results/over_seeds.ipp>
#endif
