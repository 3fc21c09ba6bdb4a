// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/core/compose/recipe.hpp>

#include "stand_ins.hpp"

#include <string>
#include <type_traits>
#include <vector>

namespace frugal_test::compose_recipe {

using namespace frugal_test::compose;
using frugal::Axis;
using frugal::Recipe;
using frugal::Without;

using A = Setting<alpha>;
using A1 = Setting<alpha, 1>;
using B = Setting<beta>;
using B1 = Setting<beta, 1>;
using C = Setting<gamma>;
using M = Setting<many>;
using M1 = Setting<many, 1>;

template <class R, class... Ps>
constexpr bool holds = std::is_same_v<typename R::policies, list<Ps...>>;

TEST_CASE("a recipe is its policies, as written") {
  CHECK(holds<Recipe<>>);
  CHECK(holds<Recipe<B, A>, B, A>);
}

TEST_CASE("a recipe in a recipe expands to its policies, at any depth and in place") {
  CHECK(holds<Recipe<A, Recipe<B, Recipe<Recipe<M>, C>>, M1>, A, B, M, C, M1>);
  CHECK(holds<Recipe<Recipe<>, Recipe<Recipe<>>>>);
}

TEST_CASE("Without adds nothing to a recipe") {
  CHECK(holds<Recipe<A, Without, B>, A, B>);
  CHECK(holds<Recipe<Without>>);
}

TEST_CASE("without takes out every policy of a kind and leaves the rest in order") {
  CHECK(holds<Recipe<A, B, C>::without<beta>, A, C>);
  CHECK(holds<Recipe<M, A, M1>::without<many>, A>);
  CHECK(holds<Recipe<A, B>::without<gamma>, A, B>);
  CHECK(holds<Recipe<Recipe<A, B>, C>::without<alpha>, B, C>);
  CHECK(holds<Recipe<>::without<alpha>>);
}

TEST_CASE("with replaces the policy of its kind, or is added") {
  CHECK(holds<Recipe<A, B>::with<A1>, B, A1>);
  CHECK(holds<Recipe<B>::with<A>, B, A>);
  CHECK(holds<Recipe<>::with<A>, A>);
}

TEST_CASE("with adds a repeatable policy to those that are there") {
  CHECK(holds<Recipe<M, A>::with<M1>, M, A, M1>);
}

TEST_CASE("with and without chain") {
  CHECK(holds<Recipe<A, B>::with<C>::without<alpha>::with<B1>, C, B1>);
}

template <class List>
struct all_policies;
template <class... Rs>
struct all_policies<list<Rs...>> {
  using type = list<typename Rs::policies...>;
};
template <class List>
using policies_of_all = typename all_policies<List>::type;

TEST_CASE("a product of two axes has every pair, the last axis varying fastest") {
  using Product = Recipe<C>::product<Axis<A, A1>, Axis<B, B1>>;
  CHECK(std::is_same_v<policies_of_all<Product>,
                       list<list<C, A, B>, list<C, A, B1>, list<C, A1, B>, list<C, A1, B1>>>);
}

TEST_CASE("a product of three axes enumerates them like nested loops") {
  using Product = Recipe<>::product<Axis<A, A1>, Axis<M>, Axis<Without, B, B1>>;
  CHECK(
      std::is_same_v<policies_of_all<Product>, list<list<A, M>, list<A, M, B>, list<A, M, B1>,
                                                    list<A1, M>, list<A1, M, B>, list<A1, M, B1>>>);
}

TEST_CASE("a product without axes is the recipe alone, and with an empty axis it is nothing") {
  CHECK(std::is_same_v<policies_of_all<Recipe<A>::product<>>, list<list<A>>>);
  CHECK(std::is_same_v<Recipe<A>::product<Axis<>>, list<>>);
  CHECK(std::is_same_v<Recipe<A>::product<Axis<B, C>, Axis<>>, list<>>);
}

TEST_CASE("a choice may be a whole recipe") {
  using Product = Recipe<M>::product<Axis<Recipe<A, B>, Without>>;
  CHECK(std::is_same_v<policies_of_all<Product>, list<list<M, A, B>, list<M>>>);
}

struct Needy {
  using kind = gamma;
  using listens = list<>;
  using needs = list<beta>;
};

TEST_CASE("legal_recipes keeps the legal recipes of a product, in order") {
  using Product = Recipe<A>::product<Axis<Without, Needy>, Axis<Without, A1, B>>;
  CHECK(std::is_same_v<policies_of_all<frugal::legal_recipes<Product>>,
                       list<list<A>, list<A, B>, list<A, Needy, B>>>);
}

TEST_CASE("for_each_recipe visits every recipe of a list in its order") {
  using Product = Recipe<A>::product<Axis<Without, Needy>, Axis<Without, B>>;
  std::vector<std::size_t> sizes;
  std::vector<bool> legal;
  frugal::for_each_recipe(Product{}, [&]<class R>() {
    sizes.push_back(R::policies::size);
    legal.push_back(R::legal);
  });
  CHECK(sizes == std::vector<std::size_t>{1, 2, 2, 3});
  CHECK(legal == std::vector<bool>{true, true, false, true});
}

}  // namespace frugal_test::compose_recipe
