// SPDX-License-Identifier: Apache-2.0
// expect: frugal: this recipe has two policies of one kind, and a recipe takes one.
// expect: frugal: Alpha needs Beta: own words. Add Beta.
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

static_assert(hears<Setting<gamma>>);
#ifdef FRUGAL_REJECT
static_assert(
    hears<Setting<gamma>, Setting<gamma, 1>, Needy<list<frugal::need<beta, alpha_without_beta>>>>);
#endif
