// SPDX-License-Identifier: Apache-2.0
#pragma once

// Recipes as values for Boost.Hana: products of recipes, and function objects for its algorithms. Include
// the headers of the algorithms that you use, such as boost/hana/filter.hpp: docs/recipes.md.
#if !__has_include(<boost/hana/tuple.hpp>)
#error \
    "frugal: frugal/recipes.hpp, frugal/compare.hpp and frugal/search.hpp need the headers of Boost.Hana, and there are none. On Debian: apt-get install libboost-dev. Elsewhere install Boost, or vcpkg's boost-hana, and link frugal::recipes."
#endif

#include <boost/hana/bool.hpp>
#include <boost/hana/cartesian_product.hpp>
#include <boost/hana/concept/foldable.hpp>
#include <boost/hana/core/tag_of.hpp>
#include <boost/hana/core/to.hpp>
#include <boost/hana/transform.hpp>
#include <boost/hana/tuple.hpp>
#include <boost/hana/type.hpp>
#include <boost/hana/unpack.hpp>

#include <concepts>
#include <string>
#include <string_view>
#include <utility>

#include <frugal/core/compose/composition.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/compose/recipe.hpp>
#include <frugal/core/compose/type_order.hpp>
#include <frugal/policy/recipe_name.hpp>

namespace frugal {

/// The choice of no policy on an axis.
using Without = Recipe<>;

/// One dimension of a product, as a Hana sequence of types: policies, recipes, or Without.
template <class... Choices>
using Axis = boost::hana::tuple<boost::hana::type<Choices>...>;

namespace detail {

template <class T>
inline constexpr bool is_recipe = false;
template <class... Ps>
inline constexpr bool is_recipe<Recipe<Ps...>> = true;

/// What Hana calls a type: the value hana::type_c<T>.
template <class T>
concept HanaType = std::same_as<typename boost::hana::tag_of<T>::type, boost::hana::type_tag>;

/// What hana::unpack takes apart: a tuple, a set, and with Hana's adapters a std::tuple.
template <class T>
concept HanaSequence = boost::hana::Foldable<T>::value;

template <class T>
constexpr bool only_types() {
  return decltype(boost::hana::unpack(std::declval<T const&>(), []<class... Ts>(Ts const&...) {
    return boost::hana::bool_c<(true && ... && HanaType<Ts>)>;
  }))::value;
}

/// Refuses what is no Hana sequence of types. Callers then instantiate nothing more, so that this is the
/// only error.
template <class T>
constexpr bool require_types() {
  static_assert(HanaSequence<T>,
                "frugal: a sequence of recipes or policies is a Hana sequence of types. Write "
                "Axis<A, B>{}, which is hana::tuple_t<A, B>, or the result of one of Hana's "
                "algorithms.");
  if constexpr (HanaSequence<T>) {
    static_assert(only_types<T>(),
                  "frugal: a sequence of recipes or policies has an element that is no type for "
                  "Hana. Write hana::type_c<Recipe<...>> for a recipe and hana::type_c<P> for a "
                  "policy; in a lambda for Hana, return them.");
    return only_types<T>();
  }
  return false;
}

template <class T>
constexpr bool require_base() {
  constexpr bool fits = is_recipe<T> || HanaType<T>;
  static_assert(fits,
                "frugal: the first argument of product() is the recipe that all combinations begin "
                "with. Write Recipe<...>{}, or Recipe<>{} for none.");
  return fits;
}
template <class... Ps>
constexpr auto as_type(Recipe<Ps...>) {
  return boost::hana::type_c<Recipe<Ps...>>;
}
template <HanaType T>
constexpr auto as_type(T type) {
  return type;
}

/// The policies of a recipe, or of a policy itself.
template <class T>
using policies_of = typename policies_in<T>::type;

struct ToRecipe {
  template <class Policies>
  constexpr auto operator()(Policies const& policies) const {
    if constexpr (require_types<Policies>()) {
      return boost::hana::unpack(policies, []<class... Ts>(Ts const&...) {
        return boost::hana::type_c<typename recipe_of<flatten<typename Ts::type...>>::type>;
      });
    }
  }
};

struct ToPolicies {
  template <class R>
  constexpr auto operator()(boost::hana::basic_type<R>) const {
    return []<class... Ps>(list<Ps...>) { return boost::hana::tuple_t<Ps...>; }(policies_of<R>{});
  }
};

struct IsLegal {
  template <class R>
  constexpr auto operator()(boost::hana::basic_type<R>) const {
    return boost::hana::bool_c<Recipe<R>::legal>;
  }
};

struct FaultOf {
  template <class R>
  constexpr std::string_view operator()(boost::hana::basic_type<R>) const {
    return Recipe<R>::fault;
  }
};

template <class K>
struct HasKind {
  template <class R>
  constexpr auto operator()(boost::hana::basic_type<R>) const {
    return boost::hana::bool_c<has<K, policies_of<R>>>;
  }
};

template <class P>
struct HasPolicy {
  template <class R>
  constexpr auto operator()(boost::hana::basic_type<R>) const {
    return boost::hana::bool_c<contains<P, policies_of<R>>>;
  }
};

template <class K>
struct PolicyOf {
  template <class R>
  constexpr auto operator()(boost::hana::basic_type<R>) const {
    if constexpr (has<K, policies_of<R>>) {
      return boost::hana::type_c<slot_of<K, policies_of<R>>>;
    } else {
      return boost::hana::type_c<Without>;
    }
  }
};

template <class P>
struct WithPolicy {
  template <class R>
  constexpr auto operator()(boost::hana::basic_type<R>) const {
    return ToRecipe{}(boost::hana::tuple_t<typename Recipe<R>::template with<P>>);
  }
};

template <class K>
struct WithoutKind {
  template <class R>
  constexpr auto operator()(boost::hana::basic_type<R>) const {
    return boost::hana::type_c<typename Recipe<R>::template without<K>>;
  }
};

struct ByName {
  template <class R, class S>
  constexpr auto operator()(boost::hana::basic_type<R>, boost::hana::basic_type<S>) const {
    return boost::hana::bool_c<(list_order(policies_of<R>{}, policies_of<S>{}) < 0)>;
  }
};

}  // namespace detail

/// hana::type_c<Recipe<Ps...>> of a Hana sequence of policies and recipes, which are expanded.
inline constexpr detail::ToRecipe to_recipe{};

/// The policies of a recipe, as a Hana sequence of types. to_recipe() of it is the recipe again.
inline constexpr detail::ToPolicies to_policies{};

/// Whether a Trainer of a recipe compiles, as a Hana boolean.
inline constexpr detail::IsLegal is_legal{};

/// The sentence of the first rule that a recipe breaks; empty if it is legal.
inline constexpr detail::FaultOf fault_of{};

/// Whether a recipe has a policy of kind K, as a Hana boolean.
template <class K>
inline constexpr detail::HasKind<K> has_kind{};

/// Whether a recipe has policy P, with these parameters, as a Hana boolean.
template <class P>
inline constexpr detail::HasPolicy<P> has_policy{};

/// The policy of kind K in a recipe, or Without: what recipes are grouped by.
template <class K>
inline constexpr detail::PolicyOf<K> policy_of{};

/// Recipe::with and Recipe::without, for hana::transform.
template <class P>
inline constexpr detail::WithPolicy<P> with_policy{};
template <class K>
inline constexpr detail::WithoutKind<K> without_kind{};

/// Whether one recipe comes before another, for hana::sort: policy by policy as they are written, by
/// name and then by arguments, numbers by size. The order is the same with every compiler.
inline constexpr detail::ByName by_name{};

/// recipe_name<R>() of an element: "AdamW + BF16".
template <class R>
std::string recipe_name(boost::hana::basic_type<R>) {
  return recipe_name<R>();
}

/// Every combination of a recipe with one choice from each axis, as a Hana tuple of recipes in the
/// order of nested loops: the last axis varies fastest. Includes illegal recipes.
///
///     product(Recipe<Optimize<AdamW>>{}, Axis<Precision<FP32>, Precision<BF16>>{},
///             Axis<Without, ClipNorm<>>{})   // four recipes
template <class Base, class... Axes>
constexpr auto product(Base const& base, Axes const&... axes) {
  namespace hana = boost::hana;
  if constexpr ((detail::require_base<Base>() & ... & detail::require_types<Axes>())) {
    return hana::transform(hana::cartesian_product(hana::make_tuple(
                               hana::make_tuple(detail::as_type(base)), hana::to_tuple(axes)...)),
                           to_recipe);
  }
}

}  // namespace frugal
