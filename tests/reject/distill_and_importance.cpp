// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Distill does not weigh its losses by how Importance draws the samples, so their mean would be biased. Remove one of them.
#include <frugal/core/compose/recipe.hpp>
#include <frugal/model/distill.hpp>
#include <frugal/policy/importance.hpp>

using namespace frugal;

template <class... Ps>
constexpr bool hears = frugal::detail::RecipeCheck<typename Recipe<Ps...>::policies>::require();

static_assert(hears<Distill<Temperature<4>>>);
static_assert(hears<Importance<By<Loss>>>);
#ifdef FRUGAL_REJECT
static_assert(hears<Distill<Temperature<4>>, Importance<By<Loss>>>);
#endif
