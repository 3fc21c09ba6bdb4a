// SPDX-License-Identifier: Apache-2.0
// expect: frugal: a type in this recipe is not a policy. A policy is a copyable, default-constructible type with `using kind` and `using listens`. Optimizers, curves and metrics are options of one: write Optimize<AdamW>, not AdamW.
#include "../core/compose/stand_ins.hpp"

using namespace frugal_test::compose;

template <class... Ps>
constexpr bool hears =
    frugal::detail::RecipeCheck<typename frugal::Recipe<Ps...>::policies>::require();

static_assert(hears<Setting<alpha>, Setting<beta>>);
#ifdef FRUGAL_REJECT
static_assert(hears<Setting<alpha>, int>);
#endif
