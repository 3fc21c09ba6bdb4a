// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <tuple>
#include <type_traits>
#include <utility>

#include <frugal/core/run/settings.hpp>
#include <frugal/report/compare/comparison.hpp>

namespace frugal {

/// What all runs of a comparison have in common, next to the job itself.
struct CompareSettings {
  /// Settings of every run. Repeat r has the seed `seed + r`, for the weights as for the data. With
  /// a folder, each run gets its own within it.
  Settings settings{};
  TargetMetric target{};
  std::size_t repeats = 3;
  /// Steps of the run of each recipe that is not measured: first allocations, kernels and files.
  std::uint64_t warmup_steps = 5;
  std::optional<double> dollars_per_hour{};  ///< of the machine; nothing: no dollars in the table
  std::ostream* progress = nullptr;          ///< gets a line before each run

  /// SettingsError for what no comparison can be made with.
  void require(bool validates) const;
};

namespace detail {
struct NoSource {};
}  // namespace detail

/// What compare() trains with each recipe: how a module is made, its objective, its data. The data
/// must outlive it.
///
/// Make  a callable that returns a new module; it is called under each run's seed
/// Ps    policies that all recipes share: Validate<Accuracy>, Log<>. Names leave them out.
///
///     fr::CompareJob job{[] { return Net(); }, fr::CrossEntropy{}, train, valid,
///                 {.settings = {.epochs = 5, .seed = 1}}, fr::Validate<fr::Accuracy>{}};
template <class Make, class Objective, class Train, class Valid, class... Ps>
struct CompareJob {
  using module_type = std::remove_cvref_t<std::invoke_result_t<Make const&>>;
  static constexpr bool validates = !std::same_as<Valid, detail::NoSource>;

  CompareJob(Make make_, Objective objective_, Train& train_, Valid& valid_,
             CompareSettings settings_ = {}, Ps... values)
    requires validates
      : make(std::move(make_)),
        objective(std::move(objective_)),
        train(std::addressof(train_)),
        valid(std::addressof(valid_)),
        settings(std::move(settings_)),
        shared(std::move(values)...) {}
  /// Without validation data.
  CompareJob(Make make_, Objective objective_, Train& train_, CompareSettings settings_ = {},
             Ps... values)
    requires(!validates)
      : make(std::move(make_)),
        objective(std::move(objective_)),
        train(std::addressof(train_)),
        settings(std::move(settings_)),
        shared(std::move(values)...) {}

  Make make;
  Objective objective;
  Train* train;
  Valid* valid = nullptr;
  CompareSettings settings;
  std::tuple<Ps...> shared;
};

template <class Make, class Objective, class Train, class Valid>
  requires(!std::same_as<std::remove_cv_t<Valid>, CompareSettings>)
CompareJob(Make, Objective, Train&, Valid&) -> CompareJob<Make, Objective, Train, Valid>;
template <class Make, class Objective, class Train, class Valid, class... Ps>
  requires(!std::same_as<std::remove_cv_t<Valid>, CompareSettings>)
CompareJob(Make, Objective, Train&, Valid&, CompareSettings, Ps...)
    -> CompareJob<Make, Objective, Train, Valid, Ps...>;
template <class Make, class Objective, class Train>
CompareJob(Make, Objective, Train&) -> CompareJob<Make, Objective, Train, detail::NoSource>;
template <class Make, class Objective, class Train, class... Ps>
CompareJob(Make, Objective, Train&, CompareSettings, Ps...)
    -> CompareJob<Make, Objective, Train, detail::NoSource, Ps...>;

namespace detail {
template <class T>
inline constexpr bool is_job = false;
template <class... Ts>
inline constexpr bool is_job<CompareJob<Ts...>> = true;
}  // namespace detail

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/report/compare/job.ipp>
#endif
