// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Accumulate<Auto> splits a step as memory allows, so two runs under Audit<BitExact> may add up in different orders. Write Accumulate<N>, or remove Audit.
#include <frugal/core/compose/recipe.hpp>
#include <frugal/policy/accumulate.hpp>
#include <frugal/policy/accumulate/split.hpp>
#include <frugal/report/audit.hpp>

using namespace frugal;

template <class... Ps>
constexpr bool hears = frugal::detail::RecipeCheck<typename Recipe<Ps...>::policies>::require();

static_assert(hears<Accumulate<4>, Audit<BitExact>>);
#ifdef FRUGAL_REJECT
static_assert(hears<Accumulate<Auto>, Audit<BitExact>>);
#endif
