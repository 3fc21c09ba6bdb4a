// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: CudaGraph captures steps on one device, and StartOn starts the run on another. Remove one of them.
#include <frugal/core/compose/recipe.hpp>
#include <frugal/policy/cuda_graph.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/policy/start_on.hpp>

using namespace frugal;

template <class... Ps>
constexpr bool hears =
    frugal::detail::RecipeCheck<typename Recipe<Optimize<AdamW>, Ps...>::policies>::require();

static_assert(hears<StartOn<Cpu>>);
static_assert(hears<CudaGraph<WholeStep>>);
#ifdef FRUGAL_REJECT
static_assert(hears<StartOn<Cpu>, CudaGraph<WholeStep>>);
#endif
