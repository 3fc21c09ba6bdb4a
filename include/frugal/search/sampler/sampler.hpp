// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <frugal/base/number_text.hpp>
#include <frugal/data/sampling/draw.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/search/trials/candidate.hpp>
#include <frugal/search/trials/history.hpp>
#include <frugal/search/trials/pareto.hpp>
#include <frugal/search/trials/ranking.hpp>

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
FRUGAL_INLINE bool has_one_value(Distribution const& of) {
  if (auto const* const real = std::get_if<Uniform>(&of)) return !(real->low < real->high);
  if (auto const* const log = std::get_if<LogUniform>(&of)) return !(log->low < log->high);
  return *count_of(of) == 1;
}

/// The candidate with exactly the values that its recipe has: those of other recipes go, and missing ones are
/// drawn. For a candidate whose recipe has changed.
FRUGAL_INLINE void fit_candidate(SearchDomain const& domain, Candidate& candidate, Draw& draw) {
  candidate.values.resize(domain.settings.size());
  for (std::size_t i = 0; i < domain.settings.size(); ++i) {
    std::optional<double>& value = candidate.values[i];
    if (!domain.settings[i].applies_to(candidate.recipe)) {
      value.reset();
    } else if (!value) {
      value = draw_value(domain.settings[i].values, draw);
    }
  }
}

/// A recipe, each as likely, and a value for each of its settings.
FRUGAL_INLINE Candidate uniform_candidate(SearchDomain const& domain, Draw& draw) {
  Candidate candidate{.recipe = draw.below(domain.recipes.size())};
  fit_candidate(domain, candidate, draw);
  return candidate;
}

/// Whether samplers learn from a trial: it is no repeat, has not failed, and has results or is over.
FRUGAL_INLINE bool has_lesson(SearchTrial const& trial) {
  return !trial.repeats && trial.state != TrialState::failed &&
         (trial.is_over() || !trial.rungs.empty());
}

namespace detail {

/// Objectives of the first trial that has results; 1 without any.
FRUGAL_INLINE std::size_t objectives_of(SearchHistory const& seen) {
  for (SearchTrial const& each : seen.trials) {
    if (!each.rungs.empty()) return each.rungs.back().values.size();
  }
  return 1;
}

/// The newest values of these trials, with infinity for NaN.
FRUGAL_INLINE std::vector<ObjectiveValues> lesson_values(SearchHistory const& seen,
                                                         std::vector<std::size_t> const& numbers) {
  std::size_t const objectives = objectives_of(seen);
  std::vector<ObjectiveValues> all;
  for (std::size_t const number : numbers) {
    all.push_back(seen.trials[number].values(objectives));
  }
  return values_to_minimise(all, "a sampler");
}

/// Numbers of the trials among the first `count` from which a sampler learns, ascending; all but number
/// `except`, and but those whose candidate is none of the domain.
FRUGAL_INLINE std::vector<std::size_t> lessons(SearchDomain const& domain,
                                               SearchHistory const& seen, std::size_t count,
                                               std::size_t except) {
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < std::min(count, seen.trials.size()); ++i) {
    SearchTrial const& trial = seen.trials[i];
    bool const learns = i != except && has_lesson(trial);
    if (learns && is_candidate_of(domain, trial.candidate)) numbers.push_back(i);
  }
  return numbers;
}

/// The rung that a trial counts for: one whose run has ended counts for all that were opened to it.
FRUGAL_INLINE std::pair<std::size_t, std::size_t> rung_of(SearchTrial const& trial) {
  std::size_t const rungs = trial.rungs.size();
  return {trial.bracket, trial.ended ? std::max(rungs, trial.opened) : rungs};
}

/// These trials by how far they have come, the farthest first; within each group by number. Complete
/// trials are the first group, and trials without results the last one. Others have come as far as the
/// farthest trial of their rung, in optimizer steps if these are equal within every rung, otherwise in
/// samples. So all trials of a rung are in one group, and rungs of two brackets that end after equally many
/// steps are, too.
FRUGAL_INLINE std::vector<std::vector<std::size_t>> groups_by_progress(
    SearchHistory const& seen, std::vector<std::size_t> numbers) {
  struct Farthest {
    std::optional<std::uint64_t> steps_of_one{};
    std::uint64_t steps = 0, samples = 0;
  };
  std::map<std::pair<std::size_t, std::size_t>, Farthest> rungs;
  bool same_steps = true;
  for (std::size_t const number : numbers) {
    SearchTrial const& trial = seen.trials[number];
    if (trial.state == TrialState::complete || trial.rungs.empty()) continue;
    RungResult const& last = trial.rungs.back();
    Farthest& rung = rungs[rung_of(trial)];
    rung.steps = std::max(rung.steps, last.steps);
    rung.samples = std::max(rung.samples, last.samples);
    if (trial.ended) continue;
    same_steps = same_steps && rung.steps_of_one.value_or(last.steps) == last.steps;
    rung.steps_of_one = last.steps;
  }
  auto const progress = [&](std::size_t number) -> std::pair<int, std::uint64_t> {
    SearchTrial const& trial = seen.trials[number];
    if (trial.state == TrialState::complete) return {2, 0};
    if (trial.rungs.empty()) return {0, 0};
    Farthest const& rung = rungs.at(rung_of(trial));
    return {1, same_steps ? rung.steps : rung.samples};
  };
  std::ranges::sort(numbers, [&](std::size_t one, std::size_t other) {
    return progress(one) == progress(other) ? one < other : progress(one) > progress(other);
  });
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t const number : numbers) {
    if (groups.empty() || progress(groups.back().front()) != progress(number)) {
      groups.emplace_back();
    }
    groups.back().push_back(number);
  }
  return groups;
}

/// These trials, the best one first: those that have come farther before others, since a value after more
/// training says more; within equal progress as best_first() has it.
FRUGAL_INLINE std::vector<std::size_t> trials_best_first(SearchHistory const& seen,
                                                         std::vector<std::size_t> numbers) {
  std::vector<std::size_t> order;
  for (std::vector<std::size_t> const& group : groups_by_progress(seen, std::move(numbers))) {
    for (std::size_t const place : best_first(lesson_values(seen, group))) {
      order.push_back(group[place]);
    }
  }
  return order;
}

/// SettingsError unless `value` is `least` or more.
FRUGAL_INLINE void require_least(std::string_view sampler, char const* setting, std::size_t value,
                                 std::size_t least, char const* why) {
  if (value >= least) return;
  throw SettingsError({.what = std::string(setting) + " is " + std::to_string(value),
                       .where = "the sampler " + std::string(sampler),
                       .why = why,
                       .fix = "Give " + std::to_string(least) + " or more."});
}

/// SettingsError unless `value` is a probability.
FRUGAL_INLINE void require_probability(std::string_view sampler, char const* setting,
                                       double value) {
  if (value >= 0 && value <= 1) return;
  throw SettingsError({.what = std::string(setting) + " is " + detail::general(value, 6),
                       .where = "the sampler " + std::string(sampler),
                       .why = "it is a probability",
                       .fix = "Give a number from 0 to 1."});
}

}  // namespace detail

}  // namespace frugal
