// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/compose/diagnostic.hpp>
#include <frugal/core/compose/rational.hpp>
#include <frugal/core/source/data_identity.hpp>
#include <frugal/core/source/source.hpp>
#include <frugal/data/sampling/pass.hpp>
#include <frugal/data/sampling/permutation.hpp>
#include <frugal/error.hpp>
#include <frugal/policy/kinds.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

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
                "LinearPace<5, 0.2>.");
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

/// An epoch that draws from the easiest samples alone until the pace is over: an Order.
///
/// Each epoch has as many samples as the set. While the pace leaves samples out, those in it come
/// several times, each once before any comes again; afterwards the order is that of Pass. All of it
/// is a function of the cursor and the scores, so any place can be sought.
///
/// Cost    8 bytes a sample, sorted once; per batch what Pass costs.
/// Errors  DataError for a score that is not a number, and unless there is one for each sample;
///         those of Pass.
/// Source  Bengio et al., "Curriculum learning" (ICML 2009); pools that grow: Hacohen and
///         Weinshall, "On the power of curriculum learning in training deep networks" (ICML 2019).
template <class Pace>
class CurriculumPass {
 public:
  using Slice = Pass::Slice;
  using pace = Pace;

  /// The recipe that trains on this order has the policy, which knows what else must fit.
  using trained_with = kinds::curriculum;
  FRUGAL_DIAGNOSTIC(
      trained_without,
      "frugal: this training source gives the easy samples first, and the recipe does "
      "not say so. Add "
      "the policy it was made with, as in Curriculum<By<Length>, LinearPace<5>>{}.");

  /// `scores` has one for each sample; the lowest is the easiest.
  CurriculumPass(std::span<double const> scores, LoaderOptions loading,
                 std::string name = "curriculum")
      : pass_(scores.size(), loading, name), easiest_(scores.size()) {
    for (std::size_t i = 0; i < scores.size(); ++i) {
      if (!std::isnan(scores[i])) continue;
      throw DataError({.what = "the score of a sample is not a number",
                       .where = name + ", sample " + std::to_string(i),
                       .why = "samples are sorted by their scores",
                       .fix = "Give each sample a number; infinity for the last."});
    }
    std::iota(easiest_.begin(), easiest_.end(), std::uint64_t{0});
    std::sort(easiest_.begin(), easiest_.end(), [&](std::uint64_t a, std::uint64_t b) {
      return scores[a] < scores[b] || (scores[a] == scores[b] && a < b);
    });
    seek({});
  }

  void seek(Cursor const& cursor) {
    pass_.seek(cursor);
    cursor_ = cursor;
    pool_ = pool_in(cursor.epoch);
    round_ = none;
  }
  Slice advance() { return pass_.advance(); }

  template <class Int>
  void indices(Slice slice, std::span<Int> out) {
    if (cursor_.in_order || pool_ == samples()) {
      pass_.indices(slice, out);
      return;
    }
    for (Int& index : out) {
      index = static_cast<Int>(easiest_[place_in_pool(slice.first++)]);
    }
  }

  LoaderOptions const& loading() const { return pass_.loading(); }
  std::uint64_t samples() const { return pass_.samples(); }
  std::uint64_t batches() const { return pass_.batches(); }

  void identify(DataIdentity& to) const {
    pass_.identify(to, "CurriculumPass", loading().shuffle);
    to.add("scores", std::span<std::uint64_t const>(easiest_));
    std::vector<std::uint64_t> pools;
    for (std::uint64_t epoch = 0; epoch < static_cast<std::uint64_t>(Pace::epochs); ++epoch) {
      pools.push_back(pool_in(epoch));
    }
    to.add("pace", std::span<std::uint64_t const>(pools));
  }

  /// Samples that an epoch draws from.
  std::uint64_t pool_in(std::uint64_t epoch) const {
    // Whatever share() says: it is `epochs` that the grace period of EarlyStop covers.
    if (epoch >= static_cast<std::uint64_t>(Pace::epochs)) return samples();
    double const share = static_cast<double>(Pace::share(epoch));
    if (!(share > 0)) return 1;  // NaN among them
    double const pool = std::ceil(std::min(share, 1.0) * static_cast<double>(samples()));
    return std::clamp(static_cast<std::uint64_t>(pool), std::uint64_t{1}, samples());
  }

 private:
  static constexpr auto none = static_cast<std::uint64_t>(-1);

  /// The pool comes in rounds, each in an order of its own.
  std::uint64_t place_in_pool(std::uint64_t place) {
    std::uint64_t const at = place % pool_;
    if (!loading().shuffle) return at;
    if (std::uint64_t const round = place / pool_; round != round_) {
      round_ = round;
      order_ =
          Permutation(detail::mix64(cursor_.seed ^ detail::mix64(round + 1)), cursor_.epoch, pool_);
    }
    return order_(at);
  }

  Pass pass_;
  std::vector<std::uint64_t> easiest_;  // samples, the easiest first
  Cursor cursor_{};
  std::uint64_t pool_ = 0;
  std::uint64_t round_ = none;  // whose order is in order_
  Permutation order_;
};

}  // namespace frugal
