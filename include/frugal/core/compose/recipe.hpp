// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <type_traits>
#include <utility>

#include <frugal/core/compose/legality.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/compose/watching.hpp>

namespace frugal {

template <class... Ps>
struct Recipe;

namespace detail {

template <class P>
struct policies_in {
  using type = list<P>;
};
template <class... Ps>
struct policies_in<Recipe<Ps...>> {
  using type = typename Recipe<Ps...>::policies;
};

template <class... Ps>
using flatten = concat<typename policies_in<Ps>::type...>;

template <class List>
struct recipe_of;
template <class... Ps>
struct recipe_of<list<Ps...>> {
  using type = Recipe<Ps...>;
};

template <class List, class K>
struct without_kind;
template <class... Ps, class K>
struct without_kind<list<Ps...>, K>
    : recipe_of<concat<std::conditional_t<Ps::kind::name != K::name, list<Ps>, list<>>...>> {};

template <class List>
struct RecipeCheck;
template <class... Ps>
struct RecipeCheck<list<Ps...>> {
  static constexpr bool policies = (... && Policy<Ps>);
  static constexpr std::string_view fault = [] {
    if constexpr (policies) {
      std::string_view const broken = fault_of(infos_of<Ps...>, order_in<Ps...>);
      if (!broken.empty()) return broken;
      std::string_view const unmet = Demands<Ps...>::fault();
      return unmet.empty() ? Watching<Ps...>::fault() : unmet;
    } else {
      return rules::not_a_policy::text;
    }
  }();
  /// The sentences of all broken rules are errors. A legal recipe costs no template for each rule.
  static constexpr bool require() {
    if constexpr (fault.empty()) {
      return true;
    } else if constexpr (policies) {
      constexpr bool fits = Diagnostics<Ps...>::require(std::index_sequence_for<Ps...>{});
      constexpr bool met = Demands<Ps...>::require();
      constexpr bool measured = Watching<Ps...>::require();
      return fits && met && measured;
    } else {
      return (true & ... & rules::not_a_policy::require<Policy<Ps>, Ps>());
    }
  }
};

}  // namespace detail

/// A named list of policies. Recipes nest: a Recipe inside a Recipe or a Trainer expands to its
/// policies.
///
/// `legal` says whether a Trainer of it compiles, and `fault` is the sentence of the first broken
/// rule, as the compiler would print it. frugal/recipes.hpp makes sequences of recipes.
template <class... Ps>
struct Recipe {
  using policies = detail::flatten<Ps...>;

  static constexpr std::string_view fault = detail::RecipeCheck<policies>::fault;
  static constexpr bool legal = fault.empty();

  /// This recipe without the policies of a kind.
  template <class K>
  using without = typename detail::without_kind<policies, K>::type;

  /// This recipe with a policy added, which replaces the one of its kind unless the kind is
  /// repeatable.
  template <class P>
  using with =
      Recipe<std::conditional_t<P::kind::repeatable, Recipe, without<typename P::kind>>, P>;
};

}  // namespace frugal
