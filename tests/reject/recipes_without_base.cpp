// SPDX-License-Identifier: Apache-2.0
// needs: recipes
// expect: frugal: the first argument of product() is the recipe that all combinations begin with. Write Recipe<...>{}, or Recipe<>{} for none.
#include <frugal/recipes.hpp>

using namespace frugal;

struct Choice {};

constexpr auto good = product(Recipe<>{}, Axis<Choice, Without>{});
#ifdef FRUGAL_REJECT
void bad() { static_cast<void>(product(Axis<Choice, Without>{}, Axis<Choice>{})); }
#endif
