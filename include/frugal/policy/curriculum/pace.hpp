// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include <frugal/core/compose/rational.hpp>

namespace frugal {

namespace detail {

template <int Epochs, Rational Start>
struct PaceOf {
  static_assert(
      Epochs >= 1,
      "frugal: a curriculum's pace of 0 epochs leaves nothing out. Write LinearPace<1> or "
      "more, or train without Curriculum.");
  static_assert(Start.value() > 0 && Start.value() < 1,
                "frugal: a curriculum starts with a share of the samples between 0 and 1, as in "
                "LinearPace<5, 0.2_r>.");
  static constexpr int epochs = Epochs;  ///< from this epoch on, all samples are drawn
  static constexpr double start = Start.value();
};

}  // namespace detail

// The share of the easiest samples that each epoch draws from. A user-defined pace has the same two
// members: `epochs`, and `share(epoch)` in (0, 1].

/// From `Start` by the same amount in each epoch, to all samples after `Epochs`.
template <int Epochs, Rational Start = Rational{1, 5}>
struct LinearPace : detail::PaceOf<Epochs, Start> {
  static double share(std::uint64_t epoch) {
    if (epoch >= Epochs) return 1;
    return LinearPace::start +
           (1 - LinearPace::start) * static_cast<double>(epoch) / static_cast<double>(Epochs);
  }
};

/// As the square root of the epochs: fast at first, as each new sample is seen less often.
/// Source  Platanios et al., "Competence-based curriculum learning for neural machine translation"
///         (NAACL 2019), equation 8 with p = 2.
template <int Epochs, Rational Start = Rational{1, 5}>
struct RootPace : detail::PaceOf<Epochs, Start> {
  static double share(std::uint64_t epoch) {
    if (epoch >= Epochs) return 1;
    double const squared = RootPace::start * RootPace::start;
    return std::sqrt(squared +
                     (1 - squared) * static_cast<double>(epoch) / static_cast<double>(Epochs));
  }
};

}  // namespace frugal
