// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: AutoBatch measures the memory of the device on which the run starts, and StartOn moves the run to another device. Write Accumulate<Auto>{.samples = N} instead of AutoBatch, or remove StartOn.
#include <frugal/core/compose/recipe.hpp>
#include <frugal/policy/auto_batch.hpp>
#include <frugal/policy/start_on.hpp>

using namespace frugal;

template <class... Ps>
constexpr bool hears = frugal::detail::RecipeCheck<typename Recipe<Ps...>::policies>::require();

static_assert(hears<Accumulate<Auto>, AutoBatch>);
static_assert(hears<Accumulate<Auto>, StartOn<Cpu>>);
#ifdef FRUGAL_REJECT
static_assert(hears<Accumulate<Auto>, AutoBatch, StartOn<Cpu>>);
#endif
