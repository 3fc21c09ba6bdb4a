// SPDX-License-Identifier: Apache-2.0
// expect: frugal: a policy of this recipe needs a kind that the recipe lacks. The compiler's note names both. Add a policy of that kind.
// expect: Needy
// expect: beta
#include "../core/compose/stand_ins.hpp"

using namespace frugal_test::compose;
using frugal_test::compose::gamma;  // not the one of <math.h>

template <class... Ps>
constexpr bool hears =
    frugal::detail::RecipeCheck<typename frugal::Recipe<Ps...>::policies>::require();

FRUGAL_DIAGNOSTIC(alpha_without_beta, "frugal: Alpha needs Beta: own words. Add Beta.");
template <class Needs>
struct Needy {
  using kind = alpha;
  using listens = list<>;
  using needs = Needs;
};

static_assert(hears<Needy<list<beta>>, Setting<beta>>);
#ifdef FRUGAL_REJECT
static_assert(hears<Needy<list<beta>>, Setting<gamma>>);
#endif
