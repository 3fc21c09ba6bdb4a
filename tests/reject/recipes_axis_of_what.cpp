// SPDX-License-Identifier: Apache-2.0
// needs: recipes
// expect: frugal: a sequence of recipes or policies is a Hana sequence of types. Write Axis<A, B>{}, which is hana::tuple_t<A, B>, or the result of one of Hana's algorithms.
#include <frugal/recipes.hpp>

using namespace frugal;

struct Choice {};

constexpr auto good = product(Recipe<>{}, Axis<Choice, Without>{});
#ifdef FRUGAL_REJECT
void bad() { static_cast<void>(product(Recipe<>{}, Choice{})); }
#endif
