// SPDX-License-Identifier: Apache-2.0
// needs: recipes
// expect: frugal: a sequence of recipes or policies has an element that is no type for Hana. Write hana::type_c<Recipe<...>> for a recipe and hana::type_c<P> for a policy; in a lambda for Hana, return them.
#include <frugal/recipes.hpp>

using namespace frugal;

struct Choice {};

constexpr auto good = to_recipe(boost::hana::make_tuple(boost::hana::type_c<Choice>));
#ifdef FRUGAL_REJECT
void bad() { static_cast<void>(to_recipe(boost::hana::make_tuple(Choice{}))); }
#endif
