// SPDX-License-Identifier: Apache-2.0
// expect: frugal: the order of these policies is a cycle: each must come after another one. Remove one `before` or `after`.
#include "../core/compose/stand_ins.hpp"

using namespace frugal_test::compose;
using frugal_test::compose::gamma;  // not the one of <math.h>

template <class... Ps>
constexpr bool hears =
    frugal::detail::RecipeCheck<typename frugal::Recipe<Ps...>::policies>::require();

template <class Kind, class After>
struct Late {
  using kind = Kind;
  using listens = list<>;
  using after = list<After>;
};

static_assert(hears<Late<alpha, beta>, Late<beta, gamma>>);
#ifdef FRUGAL_REJECT
static_assert(hears<Late<alpha, beta>, Late<beta, gamma>, Late<gamma, alpha>>);
#endif
