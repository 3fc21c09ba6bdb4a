// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/core/compose/recipe.hpp>

#include "stand_ins.hpp"

#include <type_traits>

namespace frugal_test::compose_recipe {

using namespace frugal_test::compose;
using frugal::Recipe;

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

TEST_CASE("an empty recipe adds nothing to a recipe") {
  CHECK(holds<Recipe<A, Recipe<>, B>, A, B>);
  CHECK(holds<Recipe<Recipe<>>>);
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

}  // namespace frugal_test::compose_recipe
