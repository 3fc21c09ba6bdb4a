// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: CudaGraph captures one step for the whole run, and Unfreeze changes which parameters a step trains. Remove one of them.
#include <frugal/core/compose/recipe.hpp>
#include <frugal/model/freeze.hpp>
#include <frugal/policy/cuda_graph.hpp>

using namespace frugal;

template <class... Ps>
constexpr bool hears = frugal::detail::RecipeCheck<typename Recipe<Ps...>::policies>::require();

static_assert(hears<Freeze<Where<"0.*">>, CudaGraph<WholeStep>>);
#ifdef FRUGAL_REJECT
static_assert(hears<Unfreeze<Where<"0.*">>, CudaGraph<WholeStep>>);
#endif
