// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <ostream>
#include <type_traits>

#include <frugal/search/forecast.hpp>
#include <frugal/search/job.hpp>      // IWYU pragma: export
#include <frugal/search/outcome.hpp>  // IWYU pragma: export
#include <frugal/search/run.hpp>
#include <frugal/search/sampler/evolution.hpp>     // IWYU pragma: export
#include <frugal/search/sampler/sampler.hpp>       // IWYU pragma: export
#include <frugal/search/sampler/sobol.hpp>         // IWYU pragma: export
#include <frugal/search/sampler/tpe.hpp>           // IWYU pragma: export
#include <frugal/search/schedule/median_stop.hpp>  // IWYU pragma: export
#include <frugal/search/schedule/schedule.hpp>
#include <frugal/search/schedule/successive_halving.hpp>  // IWYU pragma: export
#include <frugal/search/schedule/whole_trials.hpp>        // IWYU pragma: export
#include <frugal/search/space.hpp>                        // IWYU pragma: export

namespace frugal {

namespace detail {

/// The first of some values that is a scheduler, or a sampler; a default if there is none.
template <class Default, class Is>
auto first_that(Is) {
  return Default{};
}
template <class Default, class Is, class T, class... Ts>
auto first_that(Is is, T const& value, Ts const&... others) {
  if constexpr (decltype(is(value))::value) {
    return value;
  } else {
    return first_that<Default>(is, others...);
  }
}

template <class Space, class Job, class... Parts>
void plan_search(SearchRun<Space, Job>& all, Parts const&... parts) {
  constexpr bool known = (true && ... && (SearchScheduler<Parts> || SearchSampler<Parts>));
  static_assert(known,
                "frugal: after its settings search() takes a schedule, such as "
                "SuccessiveHalving<Eta<3>>{.trials = 64}, and a sampler, such as SobolSampler{}.");
  constexpr bool once =
      (0 + ... + int{SearchScheduler<Parts>}) <= 1 && (0 + ... + int{SearchSampler<Parts>}) <= 1;
  static_assert(once, "frugal: search() takes one schedule and one sampler. Remove the others.");
  constexpr auto is_scheduler = []<class P>(P const&) {
    return std::bool_constant<SearchScheduler<P>>{};
  };
  constexpr auto is_sampler = []<class P>(P const&) {
    return std::bool_constant<SearchSampler<P>>{};
  };
  constexpr bool legal = SearchRun<Space, Job>::is_any_legal();
  static_assert(legal,
                "frugal: search has only recipes that no Trainer accepts with the policies of its "
                "job. A search needs Checkpoint: add Checkpoint<Every<500>> to SearchJob; "
                "Recipe<...>::fault says what else is missing.");
  constexpr bool exact = !SearchRun<Space, Job>::rounds_weights();
  static_assert(
      exact,
      "frugal: a search saves a trial at the end of each rung, and Checkpoint<WeightsIn<...>> "
      "would round its weights there. Remove WeightsIn.");
  if constexpr (known && once && legal && exact) {
    all.plan(first_that<SuccessiveHalving<>>(is_scheduler, parts...),
             first_that<RandomSampler>(is_sampler, parts...));
  }
}

}  // namespace detail

/// Finds the best recipe, settings and architecture of a space. Call it in as many processes as there are
/// machines, with the same arguments and one folder that all of them see: each takes trials that no other has.
/// Killed at any time, and started again, it goes on where it was, and comes to the same decisions, unless the
/// schedule or its unit says otherwise.
///
/// A trial is a run directory. The end of a rung preempts it, so that its schedule sees the whole run, and a
/// promotion trains no sample twice: the winner's weights have the bits of its recipe trained alone.
///
/// `parts`: a schedule (SuccessiveHalving, Hyperband, Asha, MedianStop, RandomSearch, GridSearch) and a sampler (RandomSampler,
/// SobolSampler, Tpe, Evolution, Nsga2), in any order.
///
/// Errors  SettingsError for an empty or contradictory space, an objective that nothing measures, a budget below
///         one rung, and a folder with another search; StateError for a folder whose trials train another job or
///         other data, and for the checkpoints of other candidates; FormatError for a damaged journal; SearchError if
///         no trial has a result; StoreError if the folder cannot be written. Errors of trials are results.
template <class Recipes, class... Vs, class Make, class Objective, class Train, class Valid,
          class... Ps, class... Parts>
SearchOutcome search(SearchSpace<Recipes, Vs...> const& space,
                     SearchJob<Make, Objective, Train, Valid, Ps...> const& job,
                     SearchSettings const& settings, Parts const&... parts) {
  detail::SearchRun all(space, job, settings);
  detail::plan_search(all, parts...);
  return all.run();
}

/// Prints what a search will do: its rungs, its cost in the worst case and as expected. Trains and writes
/// nothing.
template <class Recipes, class... Vs, class Make, class Objective, class Train, class Valid,
          class... Ps, class... Parts>
SearchForecast explain(SearchSpace<Recipes, Vs...> const& space,
                       SearchJob<Make, Objective, Train, Valid, Ps...> const& job,
                       SearchSettings const& settings, std::ostream& out, Parts const&... parts) {
  detail::SearchRun all(space, job, settings);
  detail::plan_search(all, parts...);
  return all.explain(out);
}

}  // namespace frugal
