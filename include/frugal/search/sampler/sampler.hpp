// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/sampling/permutation.hpp>
#include <frugal/search/trials/candidate.hpp>
#include <frugal/search/trials/history.hpp>
#include <frugal/search/trials/ranking.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal {

/// A sampler of a search: a plain aggregate of settings that suggests the candidate of a trial.
///
/// suggest() is a pure function of its arguments. All its random numbers are those of a Draw with the key
/// (seed, trial), so that every worker comes to the same candidate. It never looks at repeats, and a trial
/// without results that is not over counts as not there, unless the sampler documents otherwise.
///
/// `learns` says whether suggest() looks at the history at all. A sampler whose generation() is above 0 works
/// in generations of so many trials: it takes trial n from the results of the trials before
/// n / generation() * generation(), all of which should be over by then, and ignores later ones.
///
/// require() throws SettingsError for settings out of range.
template <class S>
concept SearchSampler = requires(S const& sampler, SearchDomain const& domain,
                                 SearchHistory const& seen, std::size_t trial, std::uint64_t seed) {
  { S::name } -> std::convertible_to<std::string_view>;
  { S::learns } -> std::convertible_to<bool>;
  { sampler.suggest(domain, seen, trial, seed) } -> std::same_as<Candidate>;
  { sampler.generation() } -> std::same_as<std::size_t>;
  { sampler.text() } -> std::same_as<std::string>;
  sampler.require();
};

/// A value, each as likely as the distribution has it.
inline double draw_value(Distribution const& of, Draw& draw) {
  return value_at(of, draw.uniform());
}

/// Whether there is one value only, so that there is nothing to choose.
bool has_one_value(Distribution const& of);

/// The candidate with exactly the values that its recipe has: those of other recipes go, and missing ones are
/// drawn. For a candidate whose recipe has changed.
void fit_candidate(SearchDomain const& domain, Candidate& candidate, Draw& draw);

/// A recipe, each as likely, and a value for each of its settings.
Candidate uniform_candidate(SearchDomain const& domain, Draw& draw);

/// Whether samplers learn from a trial: it is no repeat, has not failed, and has results or is over.
bool has_lesson(SearchTrial const& trial);

namespace detail {

/// Objectives of the first trial that has results; 1 without any.
std::size_t objectives_of(SearchHistory const& seen);

/// The newest values of these trials, with infinity for NaN.
std::vector<ObjectiveValues> lesson_values(SearchHistory const& seen,
                                           std::vector<std::size_t> const& numbers);

/// Numbers of the trials among the first `count` from which a sampler learns, ascending; all but number
/// `except`, and but those whose candidate is none of the domain.
std::vector<std::size_t> lessons(SearchDomain const& domain, SearchHistory const& seen,
                                 std::size_t count, std::size_t except);

/// The rung that a trial counts for: one whose run has ended counts for all that were opened to it.
std::pair<std::size_t, std::size_t> rung_of(SearchTrial const& trial);

/// These trials by how far they have come, the farthest first; within each group by number. Complete
/// trials are the first group, and trials without results the last one. Others have come as far as the
/// farthest trial of their rung, in optimizer steps if these are equal within every rung, otherwise in
/// samples. So all trials of a rung are in one group, and rungs of two brackets that end after equally many
/// steps are, too.
std::vector<std::vector<std::size_t>> groups_by_progress(SearchHistory const& seen,
                                                         std::vector<std::size_t> numbers);

/// These trials, the best one first: those that have come farther before others, since a value after more
/// training says more; within equal progress as best_first() has it.
std::vector<std::size_t> trials_best_first(SearchHistory const& seen,
                                           std::vector<std::size_t> numbers);

/// SettingsError unless `value` is `least` or more.
void require_least(std::string_view sampler, char const* setting, std::size_t value,
                   std::size_t least, char const* why);

/// SettingsError unless `value` is a probability.
void require_probability(std::string_view sampler, char const* setting, double value);

}  // namespace detail

/// Random search: each recipe as likely, and each value of its settings as its distribution has it. It looks
/// at no history, so it needs no trial to be over, and any number of workers can ask at the same time.
///
/// Source  Bergstra and Bengio, "Random search for hyper-parameter optimization" (JMLR 13, 2012).
struct RandomSampler {
  static constexpr std::string_view name = "random";
  static constexpr bool learns = false;

  Candidate suggest(SearchDomain const& domain, SearchHistory const&, std::size_t trial,
                    std::uint64_t seed) const;

  void require() const {}
  /// For the journal: searches whose samplers differ are not the same.
  std::string text() const;
  std::size_t generation() const { return 0; }

  friend bool operator==(RandomSampler const&, RandomSampler const&) = default;
};

static_assert(SearchSampler<RandomSampler>);

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/search/sampler/sampler.ipp>
#endif
