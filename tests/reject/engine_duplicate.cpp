// SPDX-License-Identifier: Apache-2.0
// expect: frugal: this recipe has two policies of one kind, and a recipe takes one. The compiler's note names the second. Keep one of the two.
// expect: Setting<frugal_test::compose::alpha, 1
#include "../core/compose/stand_ins.hpp"

using namespace frugal_test::compose;

template <class... Ps>
constexpr bool hears =
    frugal::detail::RecipeCheck<typename frugal::Recipe<Ps...>::policies>::require();

static_assert(hears<Setting<many>, Setting<many, 1>>);
#ifdef FRUGAL_REJECT
static_assert(hears<Setting<alpha>, Setting<alpha, 1>>);
#endif
