// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <string_view>

namespace frugal {

/// When a policy is called within each event: after all policies of earlier stages, whose effects it
/// sees. In an around-hook the first is the outermost. Within a stage the order is that of the
/// kinds' names. `before` and `after` are stronger than stages, and are for the rest.
enum class Stage {
  enclose,    ///< times or traces all that follows: Profile
  prepare,    ///< sets the process or the device up: FlushDenormals, StartOn
  transform,  ///< changes data, passes or gradients: Precision, Recompute, Curriculum
  update,     ///< changes the weights, and what follows from them: Clip, Optimize, Average
  measure,    ///< measures the step: CostMeter, Throughput, Budget
  publish,    ///< writes what was measured: Log, Csv, TensorBoard
  decide,     ///< validates, and decides from the results: Schedule, Validate, EarlyStop
  keep,       ///< keeps the state for the run itself: Rollback
  save,       ///< saves all that the event did: Checkpoint
  leave,      ///< needs the save: Spot, HtmlReport
};

// once_per_run: where processes train together, only the first one calls the policy, because its
// files and lines are the run's.
//
// agreed_verdicts (false if it is not there): where processes divide each window, the policy asks to
// stop in all of them or in none, because it decides by what is equal in all. So it needs no message.

/// A slot is filled exactly once in every recipe. If the recipe does not fill it, its null policy
/// does (null_policy below), which transforms nothing and costs nothing.
struct slot_kind {
  static constexpr bool slot = true;
  static constexpr bool repeatable = false;
  static constexpr bool once_per_run = false;
  static constexpr Stage stage = Stage::transform;
};

/// An observer only watches. A recipe has at most one of each kind.
struct optional_kind {
  static constexpr bool slot = false;
  static constexpr bool repeatable = false;
  static constexpr bool once_per_run = false;
  static constexpr Stage stage = Stage::measure;
};

/// An observer of which a recipe may have several (two logs with two cadences).
struct repeatable_kind {
  static constexpr bool slot = false;
  static constexpr bool repeatable = true;
  static constexpr bool once_per_run = false;
  static constexpr Stage stage = Stage::measure;
};

/// The identity of a policy, whatever its parameters. Kinds are compared by name. It also labels
/// the policy's part of a checkpoint and breaks ties in the order, so it must be unique.
template <class K>
concept Kind = requires {
  { K::name } -> std::convertible_to<std::string_view>;
  { K::slot } -> std::convertible_to<bool>;
  { K::repeatable } -> std::convertible_to<bool>;
  { K::stage } -> std::convertible_to<Stage>;
};

/// The policy that fills a slot which the recipe leaves open. Specialised next to each null policy.
template <class Kind>
struct null_policy;

}  // namespace frugal
