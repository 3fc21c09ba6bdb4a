// SPDX-License-Identifier: Apache-2.0
// expect: frugal: Alpha bears no Beta: own words. Take one out.
#include "../core/compose/stand_ins.hpp"

using namespace frugal_test::compose;

template <class... Ps>
constexpr bool hears =
    frugal::detail::RecipeCheck<typename frugal::Recipe<Ps...>::policies>::require();

FRUGAL_DIAGNOSTIC(alpha_beside_beta, "frugal: Alpha bears no Beta: own words. Take one out.");
template <class Conflicts>
struct Shy {
  using kind = alpha;
  using listens = list<>;
  using conflicts = Conflicts;
};

static_assert(hears<Shy<list<frugal::conflict<beta, alpha_beside_beta>>>>);
#ifdef FRUGAL_REJECT
static_assert(hears<Shy<list<frugal::conflict<beta, alpha_beside_beta>>>, Setting<beta>>);
#endif
