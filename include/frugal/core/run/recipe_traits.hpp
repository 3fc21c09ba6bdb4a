// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <frugal/core/compose/composition.hpp>
#include <frugal/core/compose/declared.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/compose/recipe_facts.hpp>
#include <frugal/core/run/metric.hpp>
#include <frugal/core/run/services.hpp>

namespace frugal::detail {

/// Whether a policy gives the number of micro-batches per window as a member, at run time.
template <class P>
inline constexpr bool gives_micro_batches = false;
template <class P>
  requires requires { &P::micro_batches; }
inline constexpr bool gives_micro_batches<P> =
    std::is_member_object_pointer_v<decltype(&P::micro_batches)>;

/// Micro-batches per window that a policy declares in its type; -1 if none.
template <class P>
consteval int micro_batches_of() {
  if constexpr (requires { P::micro_batches; } && !gives_micro_batches<P>) {
    return P::micro_batches;
  } else {
    return -1;
  }
}

/// SettingsError for fewer than one.
int require_micro_batches(int given, std::string_view policy);

/// A recipe's requirements on the loop, so that the loop contains no unused code.
template <class Policies>
struct RecipeTraits;
template <class... Ps>
struct RecipeTraits<list<Ps...>> {
  /// Whether their number is known only when a run begins.
  static constexpr bool counts_later = (false || ... || gives_micro_batches<Ps>);
  /// Per window; 0: as many as the executor makes of one batch of the source. Not if `counts_later`.
  static constexpr int micro_batches = [] {
    int const said = std::max({-1, micro_batches_of<Ps>()...});
    return said < 0 ? 1 : said;
  }();
  static constexpr bool splits = !counts_later && micro_batches == 0;
  /// Batches of the source per window; 0 if `counts_later`: then RecipeFacts has them.
  static constexpr int batches = counts_later ? 0 : splits ? 1 : micro_batches;
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

/// The facts of a recipe, as far as its type decides them.
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

template <class List>
struct made_metrics;
template <class... Ms>
struct made_metrics<list<Ms...>> {
  using type = std::tuple<fresh_metric<Ms>...>;
};

/// The metrics of RecipeTraits, as the policies' values have them; of a policy that has none, default-made ones.
template <class... Ps>
auto metrics_in(Storage<Ps...> const& values) {
  if constexpr (std::is_same_v<typename RecipeTraits<list<Ps...>>::metrics, list<>>) {
    return std::tuple<>();
  } else {
    return [&]<std::size_t... Is>(std::index_sequence<Is...>) {
      auto const look = []<class P>(P const& policy) {
        if constexpr (requires { typename P::measures; }) {
          return policy.metrics;
        } else {
          return typename made_metrics<typename metrics_of<P>::type>::type();
        }
      };
      return std::tuple_cat(look(get<Is>(values))...);
    }(std::index_sequence_for<Ps...>{});
  }
}

/// All facts of a recipe. `values` are those of its policies.
template <class... Ps>
RecipeFacts facts_of(list<Ps...>, Storage<Ps...> const& values) {
  RecipeFacts facts = facts_of<list<Ps...>>();
  if constexpr (RecipeTraits<list<Ps...>>::counts_later) {
    [&]<std::size_t... Is>(std::index_sequence<Is...>) {
      auto const look = [&]<class P>(P const& policy) {
        if constexpr (gives_micro_batches<P>) {
          facts.batches = require_micro_batches(policy.micro_batches, P::kind::name);
        }
      };
      (look(get<Is>(values)), ...);
    }(std::index_sequence_for<Ps...>{});
  }
  return facts;
}

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/recipe_traits.ipp>
#endif
