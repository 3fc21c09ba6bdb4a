// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Pipeline and Replicate would both divide the micro-batches of a step. Remove Replicate. For several copies of a pipeline write Pipeline<OneForwardOneBackward, Exact>{.with = grid.stages, .copies = grid.data}, with a Grid.
#include <frugal/cluster.hpp>
#include <frugal/core/compose/recipe.hpp>

using namespace frugal;

template <class... Ps>
constexpr bool stands = frugal::detail::RecipeCheck<typename Recipe<Ps...>::policies>::require();

static_assert(stands<Pipeline<OneForwardOneBackward, Exact>>);
#ifdef FRUGAL_REJECT
static_assert(stands<Pipeline<>, Replicate<Exact>>);
#endif
