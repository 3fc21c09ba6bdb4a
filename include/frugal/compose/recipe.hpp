// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/hana/cartesian_product.hpp>
#include <boost/hana/filter.hpp>
#include <boost/hana/tuple.hpp>
#include <boost/hana/type.hpp>
#include <boost/hana/unpack.hpp>
#include <string_view>

#include <frugal/compose/legality.hpp>
#include <frugal/compose/list.hpp>
#include <frugal/compose/watching.hpp>

namespace frugal {

template <class... Ps>
struct Recipe;

/// One dimension of a comparison: alternative policies. `Without` means none of them.
template <class... Choices>
struct Axis {};

/// The choice of no policy on an axis.
struct Without {};

namespace detail {

template <class P>
struct policies_in {
  using type = list<P>;
};
template <class... Ps>
struct policies_in<Recipe<Ps...>> {
  using type = typename Recipe<Ps...>::policies;
};
template <>
struct policies_in<Without> {
  using type = list<>;
};

template <class... Ps>
using flatten = concat<typename policies_in<Ps>::type...>;

namespace hana = boost::hana;

template <class Tuple>
using recipe_of =
    typename decltype(hana::unpack(std::declval<Tuple>(), hana::template_<Recipe>))::type;

template <class Axis>
struct choices_of;
template <class... Choices>
struct choices_of<Axis<Choices...>> {
  static constexpr auto tuple = hana::tuple_t<Choices...>;
};

// Function objects instead of lambdas: g++ 12 does not deduce the result of a generic lambda inside
// an alias template.
struct recipes_of_rows {
  template <class... Rows>
  constexpr std::type_identity<list<recipe_of<Rows>...>> operator()(Rows...) const {
    return {};
  }
};

// Outside of Recipe, where `choices_of<Axis<Recipe>>` would be non-dependent and instantiated with
// each.
template <class List>
struct product_of;
template <class R, class... Axes>
struct product_of<list<R, Axes...>> {
  using type =
      typename decltype(hana::unpack(hana::cartesian_product(hana::make_tuple(
                                         choices_of<Axis<R>>::tuple, choices_of<Axes>::tuple...)),
                                     recipes_of_rows{}))::type;
};

template <class List, class K>
struct without_kind;
template <class... Ps, class K>
struct without_kind<list<Ps...>, K> {
  using type = recipe_of<decltype(hana::filter(hana::tuple_t<Ps...>, [](auto type) {
    return hana::bool_c < decltype(type)::type::kind::name != K::name > ;
  }))>;
};

template <class List>
struct facts;
template <class... Ps>
struct facts<list<Ps...>> {
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
  static constexpr bool require() {
    if constexpr (policies) {
      constexpr bool fits = Refusals<Ps...>::require(std::index_sequence_for<Ps...>{});
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
/// rule, as the compiler would print it; so a product can drop illegal combinations.
template <class... Ps>
struct Recipe {
  using policies = detail::flatten<Ps...>;

  static constexpr std::string_view fault = detail::facts<policies>::fault;
  static constexpr bool legal = fault.empty();

  /// This recipe without the policies of a kind.
  template <class K>
  using without = typename detail::without_kind<policies, K>::type;

  /// This recipe with a policy added, which replaces the one of its kind unless the kind is
  /// repeatable.
  template <class P>
  using with =
      Recipe<std::conditional_t<P::kind::repeatable, Recipe, without<typename P::kind>>, P>;

  /// Every combination of this recipe with one choice from each axis, as a list of recipes in the
  /// order of nested loops; the last axis varies fastest. Includes illegal recipes.
  ///
  ///     Recipe<Optimize<AdamW>>::product<Axis<Precision<FP32>, Precision<BF16>>,
  ///                                      Axis<Without, ClipNorm<>>>    // four recipes
  // The recipe is an axis with one choice: a product of no axes would be empty.
  template <class... Axes>
  using product = typename detail::product_of<list<Recipe, Axes...>>::type;
};

/// The legal recipes of a list.
template <class List>
struct legal_of;
template <class... Rs>
struct legal_of<list<Rs...>> {
  using type = concat<std::conditional_t<Rs::legal, list<Rs>, list<>>...>;
};
template <class List>
using legal_recipes = typename legal_of<List>::type;

/// Calls `f.template operator()<R>()` for every recipe of a list.
template <class... Rs, class F>
constexpr void for_each_recipe(list<Rs...>, F&& f) {
  (f.template operator()<Rs>(), ...);
}

}  // namespace frugal
