// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/sampler/sampler.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/data/sampling/permutation.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/search/trials/ranking.hpp>

#include <map>
#include <optional>
#include <variant>

namespace frugal {

FRUGAL_INLINE bool has_one_value(Distribution const& of) {
  if (auto const* const real = std::get_if<Uniform>(&of)) return !(real->low < real->high);
  if (auto const* const log = std::get_if<LogUniform>(&of)) return !(log->low < log->high);
  return *count_of(of) == 1;
}

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

FRUGAL_INLINE Candidate uniform_candidate(SearchDomain const& domain, Draw& draw) {
  Candidate candidate{.recipe = draw.below(domain.recipes.size())};
  fit_candidate(domain, candidate, draw);
  return candidate;
}

FRUGAL_INLINE bool has_lesson(SearchTrial const& trial) {
  return !trial.repeats && trial.state != TrialState::failed &&
         (trial.is_over() || !trial.rungs.empty());
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE std::size_t objectives_of(SearchHistory const& seen) {
  for (SearchTrial const& each : seen.trials) {
    if (!each.rungs.empty()) return each.rungs.back().values.size();
  }
  return 1;
}

FRUGAL_INLINE std::vector<ObjectiveValues> lesson_values(SearchHistory const& seen,
                                                         std::vector<std::size_t> const& numbers) {
  std::size_t const objectives = objectives_of(seen);
  std::vector<ObjectiveValues> all;
  for (std::size_t const number : numbers) {
    all.push_back(seen.trials[number].values(objectives));
  }
  return values_to_minimise(all, "a sampler");
}

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

FRUGAL_INLINE std::pair<std::size_t, std::size_t> rung_of(SearchTrial const& trial) {
  std::size_t const rungs = trial.rungs.size();
  return {trial.bracket, trial.ended ? std::max(rungs, trial.opened) : rungs};
}

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

FRUGAL_INLINE void require_least(std::string_view sampler, char const* setting, std::size_t value,
                                 std::size_t least, char const* why) {
  if (value >= least) return;
  throw SettingsError({.what = std::string(setting) + " is " + std::to_string(value),
                       .where = "the sampler " + std::string(sampler),
                       .why = why,
                       .fix = "Give " + std::to_string(least) + " or more."});
}

FRUGAL_INLINE void require_probability(std::string_view sampler, char const* setting,
                                       double value) {
  if (value >= 0 && value <= 1) return;
  throw SettingsError({.what = std::string(setting) + " is " + detail::general(value, 6),
                       .where = "the sampler " + std::string(sampler),
                       .why = "it is a probability",
                       .fix = "Give a number from 0 to 1."});
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE Candidate RandomSampler::suggest(SearchDomain const& domain, SearchHistory const&,
                                               std::size_t trial, std::uint64_t seed) const {
  Draw draw({.index = trial, .seed = seed}, draw_stream("search.random"));
  return uniform_candidate(domain, draw);
}

FRUGAL_INLINE std::string RandomSampler::text() const { return std::string(name); }

}  // namespace frugal
