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
  /// Whether the optimizer computes a window's loss more than once.
  static constexpr bool reevaluates = (false || ... || has_property<property::reevaluates, Ps>);
  /// Metrics of a validation, in addition to the loss.
  using metrics = concat<typename metrics_of<Ps>::type...>;
};

/// The strategy that the policy with which several processes train names; `Otherwise` in one process.
template <class Policies, class Otherwise>
struct strategy_named {
  using type = Otherwise;
};
template <class Policies, class Otherwise>
  requires provided<service::reduce, Policies>
struct strategy_named<Policies, Otherwise> {
  using type = typename provider_of<service::reduce, void, Policies>::type::strategy;
};
template <class Policies, class Otherwise>
using strategy_or = typename strategy_named<Policies, Otherwise>::type;

template <class Context>
using traits_of = RecipeTraits<typename Context::policies>;

/// The facts of a recipe.
template <class Policies>
constexpr RecipeFacts facts_of() {
  using Traits = RecipeTraits<Policies>;
  constexpr bool agrees = provided<service::reduce, Policies>;
  constexpr bool divides = provided<service::share, Policies>;
  static_assert(agrees || !divides,
                "frugal: a policy of this recipe provides service::share and not service::reduce. "
                "Provide both.");
  return {.captures_steps = captures_steps<Policies>,
          .agrees = agrees,
          .divides = divides,
          .shares = agrees || divides,
          .splits = Traits::splits,
          .batches = Traits::batches};
}

}  // namespace frugal::detail
