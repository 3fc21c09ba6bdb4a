// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <type_traits>

#include <frugal/core/compose/declared.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/compose/recipe_facts.hpp>
#include <frugal/core/run/services.hpp>

namespace frugal::detail {

/// Micro-batches per window that a policy declares; -1 if none.
template <class P>
consteval int micro_batches_of() {
  if constexpr (requires { P::micro_batches; }) {
    return P::micro_batches;
  } else {
    return -1;
  }
}

template <class P>
consteval bool says_reevaluates() {
  if constexpr (requires { P::reevaluates; }) {
    return P::reevaluates;
  } else {
    return false;
  }
}

/// How processes measure a validation: alone, each its own and then the sum, or all of them parts of one.
enum class MeasuredBy { one_process, summed, divided };

/// A recipe's requirements on the loop, so that the loop contains no unused code.
template <class Policies>
struct RecipeTraits;
template <class... Ps>
struct RecipeTraits<list<Ps...>> {
  /// Per window; 0: as many as the executor makes of one batch of the source.
  static constexpr int micro_batches = [] {
    int const said = std::max({-1, micro_batches_of<Ps>()...});
    return said < 0 ? 1 : said;
  }();
  static constexpr bool splits = micro_batches == 0;
  /// Batches of the source per window.
  static constexpr int batches = splits ? 1 : micro_batches;
  /// Whether a window is this process's share of a larger one, so that its backward passes start
  /// from their weights.
  static constexpr bool shares =
      provided<service::reduce, list<Ps...>> || provided<service::share, list<Ps...>>;
  /// Whether processes divide each window's micro-batches.
  static constexpr bool divides = provided<service::share, list<Ps...>>;
  static constexpr MeasuredBy measured_by =
      divides ? MeasuredBy::divided : (shares ? MeasuredBy::summed : MeasuredBy::one_process);
  /// Whether the optimizer computes a window's loss more than once.
  static constexpr bool reevaluates = (false || ... || says_reevaluates<Ps>());
  /// Metrics of a validation, in addition to the loss.
  using metrics = concat<typename metrics_of<Ps>::type...>;
};

template <class Context>
using traits_of = RecipeTraits<typename Context::policies>;

/// The facts of a recipe.
template <class Policies>
constexpr RecipeFacts facts_of() {
  using Traits = RecipeTraits<Policies>;
  return {.captures_steps = captures_steps<Policies>,
          .agrees = provided<service::reduce, Policies>,
          .divides = Traits::divides,
          .shares = Traits::shares,
          .splits = Traits::splits,
          .batches = Traits::batches};
}

}  // namespace frugal::detail
