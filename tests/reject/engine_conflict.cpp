// SPDX-License-Identifier: Apache-2.0
// expect: frugal: two policies of this recipe exclude each other. The compiler's note names the policy and the kind that it excludes. Remove one of them.
// expect: Shy
// expect: beta
#include "../core/compose/stand_ins.hpp"

using namespace frugal_test::compose;
using frugal_test::compose::gamma;  // not the one of <math.h>

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

static_assert(hears<Shy<list<beta>>, Setting<gamma>>);
#ifdef FRUGAL_REJECT
static_assert(hears<Setting<beta>, Shy<list<beta>>>);
#endif
