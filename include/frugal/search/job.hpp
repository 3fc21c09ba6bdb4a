// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/core/measure/valid_sources.hpp>
#include <frugal/core/run/metrics.hpp>
#include <frugal/core/run/run_limits.hpp>
#include <frugal/core/run/settings.hpp>
#include <frugal/error.hpp>
#include <frugal/search/forecast.hpp>
#include <frugal/search/journal_records.hpp>
#include <frugal/search/schedule/schedule.hpp>
#include <frugal/search/trials/candidate.hpp>
#include <frugal/search/trials/finalists.hpp>
#include <frugal/search/trials/history.hpp>

namespace frugal {

/// The most that all trials of a search cost together. In steps or samples it is planned for: the search begins
/// no more than it pays for, and comes to the same trials on every machine. Hours and dollars are measured: when
/// they are spent, all workers stop, and a larger budget continues.
struct SearchBudget {
  std::optional<std::uint64_t> steps{};    ///< of all trials; for rungs in steps
  std::optional<std::uint64_t> samples{};  ///< likewise; for rungs in samples
  std::optional<double> hours{};           ///< of all workers together
  std::optional<double> dollars{};         ///< likewise; needs a price
};

/// The settings that all trials of a search have in common, next to the job itself.
struct SearchSettings {
  /// Settings of every trial. `run_dir` is the folder of the search: its journal, and a run directory for each
  /// trial. `seed` is that of every trial, for the weights as for the data; a finalist's repeats have the seeds
  /// after it.
  Settings settings{};
  /// Figures that are minimised or maximised; with several the Pareto front is searched. Names: "loss" and the other
  /// metrics of Validate, "train_loss", "seconds", "dollars", "bytes" (parameters and buffers), and those of
  /// `measures`.
  std::vector<SearchObjective> objectives{{}};
  /// With several objectives the one that names the winner: of the Pareto front the trial that is the best in it.
  /// Empty: then several objectives have a front, and no winner, code, weights or repeats of finalists.
  std::string winner_by{};
  SearchBudget budget{};
  Finalists finalists{};
  std::optional<double>
      dollars_per_hour{};  ///< of the machine; not needed where the job has a CostMeter
  /// How long a whole run takes, for rungs in seconds or cents, in that unit.
  std::optional<std::uint64_t> horizon{};
  /// Further objectives: each is called with the module at the end of each rung, in evaluation mode and without
  /// gradients.
  std::map<std::string, std::function<double(torch::nn::Module&)>> measures{};
  std::size_t most_failures = 3;  ///< errors of a trial in one rung after which it is left
  /// Processes one after the other that may be killed or crash in a rung of a trial without a new checkpoint, as
  /// for a lack of host memory, after which it is left.
  std::size_t most_kills = 10;
  std::ostream* progress = nullptr;  ///< gets a line for each rung that ends

  /// SettingsError for what no search can be made with.
  void require() const;
  /// The place of the objective that names the winner; nothing if there is none.
  std::optional<std::size_t> winning_objective() const;
  /// The finalists that are repeated: none where no winner is named.
  Finalists repeated() const {
    return winning_objective() ? finalists : Finalists{.count = 0, .seeds = finalists.seeds};
  }
};

namespace detail {

/// Whether a metric of frugal is better if it is larger; nothing for a name that frugal does not know.
std::optional<bool> larger_is_better(std::string_view name);

}  // namespace detail

namespace detail {

struct NoArchitecture {};
struct NoValidation {};

template <class Call>
struct architecture_in {
  using type = void;
};
template <class R>
struct architecture_in<R (*)()> {
  using type = NoArchitecture;
};
template <class R, class A>
struct architecture_in<R (*)(A)> {
  using type = std::remove_cvref_t<A>;
};
template <class R, class... As>
struct architecture_in<R (*)(As...) noexcept> : architecture_in<R (*)(As...)> {};
template <class C, class R, class... As>
struct architecture_in<R (C::*)(As...) const> : architecture_in<R (*)(As...)> {};
template <class C, class R, class... As>
struct architecture_in<R (C::*)(As...) const noexcept> : architecture_in<R (*)(As...)> {};

/// A function, or an object with one call operator: their arguments have types that can be seen.
template <class Make>
concept PlainFunction = std::is_pointer_v<Make> && std::is_function_v<std::remove_pointer_t<Make>>;
template <class Make>
concept SeenCall = PlainFunction<Make> || requires { &Make::operator(); };

template <class Make>
struct call_of {
  using type = Make;
};
template <class Make>
  requires(!PlainFunction<Make>)
struct call_of<Make> {
  using type = decltype(&Make::operator());
};

/// The type that `make` takes: a class whose members are searched.
template <class Make>
constexpr auto architecture_of() {
  if constexpr (SeenCall<Make>) {
    using Found = typename architecture_in<typename call_of<Make>::type>::type;
    static_assert(!std::is_void_v<Found>,
                  "frugal: make() takes nothing, or one architecture by value or constant "
                  "reference. Write [](Shape const& shape) { return Net(shape); }.");
    return std::type_identity<std::conditional_t<std::is_void_v<Found>, NoArchitecture, Found>>{};
  } else {
    static_assert(SeenCall<Make>,
                  "frugal: a search cannot see what make() takes. Write the type of its argument: "
                  "[](Shape const& shape) { return Net(shape); }.");
    return std::type_identity<NoArchitecture>{};
  }
}

/// The module's type; void where another assertion has refused make().
template <class Make, class Architecture>
struct made_by : std::type_identity<void> {};
template <class Make, class Architecture>
  requires(SeenCall<Make> && std::invocable<Make const&, Architecture const&>)
struct made_by<Make, Architecture> : std::invoke_result<Make const&, Architecture const&> {};
template <class Make>
  requires(SeenCall<Make> && std::invocable<Make const&>)
struct made_by<Make, NoArchitecture> : std::invoke_result<Make const&> {};

}  // namespace detail

/// A job for search(): how a module is made of an architecture, the objective, the data. The data must
/// outlive it.
///
/// Make  a function or a callable that returns a new module, of nothing or of an architecture: a struct whose default is the
///       architecture where the space varies none of its members. Modules of all architectures have one type.
/// Ps    policies that all recipes share; one of them is Checkpoint
///
///     struct Shape { int width = 128, depth = 2; };
///     fr::SearchJob job{[](Shape const& shape) { return Net(shape.width, shape.depth); },
///                       fr::CrossEntropy{}, train, valid, fr::Validate<fr::Accuracy>{},
///                       fr::Checkpoint<fr::Every<500>>{}};
template <class Make, class Objective, class Train, class Valid, class... Ps>
struct SearchJob {
  using architecture = typename decltype(detail::architecture_of<Make>())::type;
  static constexpr bool has_architecture = !std::same_as<architecture, detail::NoArchitecture>;

  SearchJob(Make make_, Objective objective_, Train& train_, Valid& valid_, Ps... values)
      : make(std::move(make_)),
        objective(std::move(objective_)),
        train(std::addressof(train_)),
        valid(std::addressof(valid_)),
        shared(std::move(values)...) {}
  SearchJob(Make, Objective, Train&, Ps...)
    requires std::same_as<Valid, detail::NoValidation>;

  static_assert(
      !std::same_as<Valid, detail::NoValidation> &&
          !requires { typename std::remove_cv_t<Valid>::kind; },
      "frugal: a search compares its trials by validation data, which come after the training "
      "data. Write SearchJob{make, objective, train, valid, policies...}.");
  static_assert(
      !detail::SeenCall<Make> || !has_architecture ||
          std::invocable<Make const&, architecture const&>,
      "frugal: make() changes the architecture that it takes. Write [](Shape const& shape) { "
      "return Net(shape); }.");
  static_assert(
      !detail::is_named_source<std::remove_cv_t<Valid>>,
      "frugal: a search has one validation source, and its metrics have plain names. Give "
      "it without named<...>().");

  auto make_module(architecture const& of) const {
    if constexpr (has_architecture) {
      return make(of);
    } else {
      return make();
    }
  }
  using module_type = std::remove_cvref_t<typename detail::made_by<Make, architecture>::type>;

  Make make;
  Objective objective;
  Train* train;
  Valid* valid;
  std::tuple<Ps...> shared;
};

template <class Make, class Objective, class Train, class Valid, class... Ps>
SearchJob(Make, Objective, Train&, Valid&, Ps...)
    -> SearchJob<Make, Objective, Train, Valid, Ps...>;
// A job without validation data gets this type, so that SearchJob refuses it in one sentence.
template <class Make, class Objective, class Train, class... Ps>
SearchJob(Make, Objective, Train&, Ps...)
    -> SearchJob<Make, Objective, Train, detail::NoValidation, Ps...>;

}  // namespace frugal

namespace frugal::detail {

/// The texts that a process must have in common with those that have searched in a folder before: whatever
/// decisions depend on. JobIdentity adds what the trials are trained with.
///
/// `limits`: of each recipe's run.
SearchIdentity search_identity(SearchSettings const& settings, SearchDomain const& domain,
                               std::string const& schedule, std::string const& sampler,
                               std::vector<RunLimits> const& limits);

/// The figures of a trial at the end of a rung.
struct MeasuredTrial {
  std::string recipe{};
  Metrics metrics{};  ///< of the validation data
  double train_loss = 0;
  double seconds = 0;               ///< of the trial so far
  std::optional<double> dollars{};  ///< by its CostMeter, if it has one
};

/// A setting by which no trial can be trained or measured: an error of the search, and not of a trial.
struct ObjectiveError : SettingsError {
  using SettingsError::SettingsError;
};

[[noreturn]] void refuse_unpriced(char const* why);

/// One value for each objective of the search, all to be minimised. ObjectiveError for one that nothing measures.
ObjectiveValues objective_values(SearchSettings const& search, MeasuredTrial const& trial,
                                 torch::nn::Module& module);

/// SettingsError for an objective that no recipe can measure, as far as types show, and for one or a budget in
/// dollars without a price.
///
/// `recipes`: the search's entrants.
template <class Recipes>
void require_objectives(SearchSettings const& search, Recipes const& recipes) {
  using Recipe = typename Recipes::value_type;
  bool const priced =
      search.dollars_per_hour || std::ranges::all_of(recipes, &Recipe::has_cost_meter);
  if (search.budget.dollars && !priced) refuse_unpriced("the cost of a trial is not known");
  for (SearchObjective const& each : search.objectives) {
    if (search.measures.contains(each.name)) continue;
    if (each.name == "dollars" && !priced) refuse_unpriced("a trial without one costs nothing");
    std::initializer_list<std::string_view> const own{"train_loss", "bytes", "seconds", "dollars"};
    if (std::ranges::count(own, each.name) != 0) continue;
    for (Recipe const& recipe : recipes) {
      if (recipe.may_measure(each.name)) continue;
      throw SettingsError(
          {.what = "nothing measures the objective '" + each.name + "'",
           .where = "SearchSettings::objectives",
           .why = "the recipe '" + recipe.name + "' has no metric of that name",
           .fix = "Add it to Validate, or a function to SearchSettings::measures."});
    }
  }
}

/// A whole run in the unit of the rungs. SettingsError where the recipes do not agree on it, or it is not known.
///
/// `all`: the limits of each recipe's run.
std::uint64_t search_horizon(SearchSettings const& settings, RungUnit unit,
                             std::vector<RunLimits> const& all);

/// The budget in the unit of the rungs, for which a search is planned, if it is given.
std::optional<std::uint64_t> planned_budget(SearchBudget const& budget, RungUnit unit);

/// The part of a planned budget that the finalists' repeats leave for trials.
std::uint64_t without_repeats(std::uint64_t budget, std::uint64_t repeats, RungUnit unit);

/// SettingsError for a planned budget with which no trial comes to its end, even if each is better than all before.
void require_complete(SearchForecast const& most, std::uint64_t budget, RungUnit unit);

/// SettingsError for a budget in time or money that does not pay for a first rung in time or money.
void require_first_rung(SearchSettings const& settings, RungUnit unit, std::uint64_t first);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/search/job.ipp>
#endif
