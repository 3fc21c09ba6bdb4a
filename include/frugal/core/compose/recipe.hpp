// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

#include <frugal/core/compose/legality.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/compose/watching.hpp>

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

template <class Axis>
struct choices_of;
template <class... Choices>
struct choices_of<Axis<Choices...>> {
  using type = list<Choices...>;
};

// For how many consecutive recipes each axis keeps its choice: the product of the sizes after it.
template <std::size_t... Sizes>
inline constexpr std::array<std::size_t, sizeof...(Sizes)> strides_of = [] {
  std::array<std::size_t, sizeof...(Sizes)> strides{Sizes...};
  std::size_t stride = 1;
  for (std::size_t axis = sizeof...(Sizes); axis-- > 0;) {
    stride *= std::exchange(strides[axis], stride);
  }
  return strides;
}();

// Recipe number `Row` computes its choices by arithmetic rather than from another recipe, so the
// depth of instantiation does not grow with the number of recipes.
template <std::size_t Row, class Strides, class R, class... Axes>
struct recipe_at;
template <std::size_t Row, std::size_t... Strides, class R, class... Axes>
struct recipe_at<Row, std::index_sequence<Strides...>, R, Axes...> {
  using type = Recipe<
      R, type_at<typename choices_of<Axes>::type, Row / Strides % choices_of<Axes>::type::size>...>;
};

template <class Rows, class Places, class R, class... Axes>
struct product_of;
template <std::size_t... Rows, std::size_t... Places, class R, class... Axes>
struct product_of<std::index_sequence<Rows...>, std::index_sequence<Places...>, R, Axes...> {
  static constexpr auto const& strides = strides_of<choices_of<Axes>::type::size...>;
  using type =
      list<typename recipe_at<Rows, std::index_sequence<strides[Places]...>, R, Axes...>::type...>;
};

template <class R, class... Axes>
using product =
    typename product_of<std::make_index_sequence<(1 * ... * choices_of<Axes>::type::size)>,
                        std::index_sequence_for<Axes...>, R, Axes...>::type;

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
  static constexpr bool require() {
    if constexpr (policies) {
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
/// rule, as the compiler would print it; so a product can drop illegal combinations.
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

  /// Every combination of this recipe with one choice from each axis, as a list of recipes in the
  /// order of nested loops; the last axis varies fastest. Includes illegal recipes.
  ///
  ///     Recipe<Optimize<AdamW>>::product<Axis<Precision<FP32>, Precision<BF16>>,
  ///                                      Axis<Without, ClipNorm<>>>    // four recipes
  template <class... Axes>
  using product = detail::product<Recipe, Axes...>;
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
