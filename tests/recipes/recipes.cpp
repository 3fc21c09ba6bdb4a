// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: recipes
#include <doctest/doctest.h>

#include <frugal/recipes.hpp>

#include <boost/hana/all_of.hpp>
#include <boost/hana/append.hpp>
#include <boost/hana/comparing.hpp>
#include <boost/hana/concat.hpp>
#include <boost/hana/equal.hpp>
#include <boost/hana/filter.hpp>
#include <boost/hana/first.hpp>
#include <boost/hana/for_each.hpp>
#include <boost/hana/group.hpp>
#include <boost/hana/length.hpp>
#include <boost/hana/partition.hpp>
#include <boost/hana/reverse.hpp>
#include <boost/hana/second.hpp>
#include <boost/hana/set.hpp>
#include <boost/hana/sort.hpp>
#include <boost/hana/transform.hpp>
#include <boost/hana/unpack.hpp>

#include "core/compose/stand_ins.hpp"

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

namespace frugal_test::recipes_recipes {

namespace hana = boost::hana;
using frugal::Axis;
using frugal::Recipe;
using frugal::Without;
using frugal_test::compose::alpha;
using frugal_test::compose::beta;
using frugal_test::compose::gamma;
using frugal_test::compose::many;
using frugal_test::compose::Setting;

using A = Setting<alpha>;
using A1 = Setting<alpha, 1>;
using B = Setting<beta>;
using B1 = Setting<beta, 1>;
using C = Setting<gamma>;
using M = Setting<many>;
using M1 = Setting<many, 1>;

/// Illegal without a policy of kind beta.
struct Needy {
  using kind = gamma;
  using listens = frugal::list<>;
  using needs = frugal::list<beta>;
};

/// Whether two values that Hana knows at compile time are equal.
template <class X, class Y>
constexpr bool same(X const& x, Y const& y) {
  return decltype(hana::equal(x, y))::value;
}

TEST_CASE("a product of two axes has every pair, the last axis varying fastest") {
  CHECK(
      same(frugal::product(Recipe<C>{}, Axis<A, A1>{}, Axis<B, B1>{}),
           hana::tuple_t<Recipe<C, A, B>, Recipe<C, A, B1>, Recipe<C, A1, B>, Recipe<C, A1, B1>>));
}

TEST_CASE("a product of three axes enumerates them like nested loops") {
  CHECK(same(frugal::product(Recipe<>{}, Axis<A, A1>{}, Axis<M>{}, Axis<Without, B, B1>{}),
             hana::tuple_t<Recipe<A, M>, Recipe<A, M, B>, Recipe<A, M, B1>, Recipe<A1, M>,
                           Recipe<A1, M, B>, Recipe<A1, M, B1>>));
}

TEST_CASE("a product without axes is the recipe alone, and with an empty axis it is nothing") {
  CHECK(same(frugal::product(Recipe<A>{}), hana::tuple_t<Recipe<A>>));
  CHECK(same(frugal::product(Recipe<A>{}, Axis<>{}), hana::make_tuple()));
  CHECK(same(frugal::product(Recipe<A>{}, Axis<B, C>{}, Axis<>{}), hana::make_tuple()));
}

TEST_CASE("a choice may be a whole recipe, and expands in place") {
  CHECK(same(frugal::product(Recipe<M>{}, Axis<Recipe<A, Recipe<B>>, Without>{}, Axis<C>{}),
             hana::tuple_t<Recipe<M, A, B, C>, Recipe<M, C>>));
}

TEST_CASE("an axis is any Hana sequence of types, and the base may be a type as well") {
  auto const axis = hana::append(Axis<Without>{}, hana::type_c<B>);
  CHECK(
      same(frugal::product(hana::type_c<Recipe<A>>, axis), hana::tuple_t<Recipe<A>, Recipe<A, B>>));
  CHECK(same(frugal::product(Recipe<A>{}, hana::make_set(hana::type_c<B>)),
             hana::tuple_t<Recipe<A, B>>));
}

TEST_CASE("a recipe converts to its policies and back, expanded") {
  CHECK(same(frugal::to_policies(hana::type_c<Recipe<A, Recipe<B, M>, M1>>),
             hana::tuple_t<A, B, M, M1>));
  CHECK(same(frugal::to_recipe(hana::tuple_t<A, B, M, M1>), hana::type_c<Recipe<A, B, M, M1>>));
  CHECK(same(frugal::to_recipe(hana::make_tuple()), hana::type_c<Recipe<>>));
  CHECK(same(frugal::to_policies(hana::type_c<Recipe<>>), hana::make_tuple()));
}

TEST_CASE("Hana's algorithms on policies make recipes") {
  auto const policies = frugal::to_policies(hana::type_c<Recipe<A, B>>);
  CHECK(same(frugal::to_recipe(hana::reverse(policies)), hana::type_c<Recipe<B, A>>));
  CHECK(same(frugal::to_recipe(hana::concat(policies, Axis<C, Recipe<M, M1>>{})),
             hana::type_c<Recipe<A, B, C, M, M1>>));
}

TEST_CASE("every recipe of a product is that of its policies") {
  constexpr auto all =
      frugal::product(Recipe<M>{}, Axis<Without, Needy, Recipe<A, M1>>{}, Axis<Without, A1, B>{});
  CHECK(same(hana::transform(hana::transform(all, frugal::to_policies), frugal::to_recipe), all));
}

constexpr auto mixed = frugal::product(Recipe<A>{}, Axis<Without, Needy>{}, Axis<Without, A1, B>{});

TEST_CASE("filtered by is_legal, a product keeps the recipes that a trainer takes, in order") {
  CHECK(same(hana::filter(mixed, frugal::is_legal),
             hana::tuple_t<Recipe<A>, Recipe<A, B>, Recipe<A, Needy, B>>));
}

TEST_CASE("fault_of is the sentence of the rule that a recipe breaks") {
  std::vector<std::string_view> faults;
  hana::for_each(mixed, [&](auto recipe) { faults.push_back(frugal::fault_of(recipe)); });
  REQUIRE(faults.size() == 6);
  CHECK(faults[0] == "");
  CHECK(faults[1] == frugal::rules::duplicate::text);
  CHECK(faults[3] == Recipe<A, Needy>::fault);
  CHECK(faults[3] != "");
}

TEST_CASE("partition by a kind or by a policy splits a product") {
  constexpr auto all = frugal::product(Recipe<>{}, Axis<Without, A, A1>{}, Axis<Without, B>{});
  constexpr auto by_kind = hana::partition(all, frugal::has_kind<alpha>);
  CHECK(same(hana::first(by_kind),
             hana::tuple_t<Recipe<A>, Recipe<A, B>, Recipe<A1>, Recipe<A1, B>>));
  CHECK(same(hana::second(by_kind), hana::tuple_t<Recipe<>, Recipe<B>>));
  CHECK(same(hana::filter(all, frugal::has_policy<A1>), hana::tuple_t<Recipe<A1>, Recipe<A1, B>>));
}

TEST_CASE("recipes are grouped by their policy of a kind, and those without it by Without") {
  constexpr auto all = frugal::product(Recipe<>{}, Axis<Without, A, A1>{}, Axis<B, B1>{});
  constexpr auto groups = hana::group.by(hana::comparing(frugal::policy_of<alpha>), all);
  CHECK(same(groups, hana::make_tuple(hana::tuple_t<Recipe<B>, Recipe<B1>>,
                                      hana::tuple_t<Recipe<A, B>, Recipe<A, B1>>,
                                      hana::tuple_t<Recipe<A1, B>, Recipe<A1, B1>>)));
  CHECK(same(frugal::policy_of<beta>(hana::type_c<Recipe<A, B1>>), hana::type_c<B1>));
  CHECK(same(frugal::policy_of<beta>(hana::type_c<Recipe<A>>), hana::type_c<Without>));
}

TEST_CASE("sorted by name, recipes are in the order of their policies, shorter ones first") {
  CHECK(same(
      hana::sort(
          hana::tuple_t<Recipe<B>, Recipe<A, C>, Recipe<A1>, Recipe<>, Recipe<A, B>, Recipe<A>>,
          frugal::by_name),
      hana::tuple_t<Recipe<>, Recipe<A>, Recipe<A, B>, Recipe<A, C>, Recipe<A1>, Recipe<B>>));
}

TEST_CASE("with_policy and without_kind change every recipe, as Recipe's members do") {
  constexpr auto all = frugal::product(Recipe<B>{}, Axis<Without, A>{});
  CHECK(same(hana::transform(all, frugal::with_policy<A1>),
             hana::tuple_t<Recipe<B, A1>, Recipe<B, A1>>));
  CHECK(same(hana::transform(all, frugal::with_policy<M>),
             hana::tuple_t<Recipe<B, M>, Recipe<B, A, M>>));
  CHECK(same(hana::transform(all, frugal::without_kind<beta>), hana::tuple_t<Recipe<>, Recipe<A>>));
}

struct Short {
  using kind = alpha;
  using listens = frugal::list<>;
  static constexpr std::string_view label = "short";
};

TEST_CASE("recipe_name takes an element of a product") {
  std::vector<std::string> names;
  hana::for_each(frugal::product(Recipe<Short>{}, Axis<Without, Recipe<B>>{}),
                 [&](auto recipe) { names.push_back(frugal::recipe_name(recipe)); });
  CHECK(names ==
        std::vector{frugal::recipe_name<Recipe<Short>>(), frugal::recipe_name<Recipe<Short, B>>()});
  CHECK(names[0] == "short");
}

TEST_CASE("unpacked, a product is the template arguments of anything") {
  constexpr auto count = hana::unpack(mixed, [](auto... recipes) {
    return frugal::list<typename decltype(recipes)::type...>::size;
  });
  CHECK(count == 6);
}

}  // namespace frugal_test::recipes_recipes
