// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: two policies of this recipe each execute windows in their own way (Accumulate<Auto> splits them to fit memory, CudaGraph<WholeStep> replays them). Remove one of them.
#include <frugal/core/compose/recipe.hpp>
#include <frugal/policy/accumulate/split.hpp>
#include <frugal/policy/cuda_graph.hpp>

using namespace frugal;

template <class... Ps>
constexpr bool hears = frugal::detail::RecipeCheck<typename Recipe<Ps...>::policies>::require();

static_assert(hears<Accumulate<4>, CudaGraph<WholeStep>>);
static_assert(hears<Accumulate<Auto>>);
#ifdef FRUGAL_REJECT
static_assert(hears<Accumulate<Auto>, CudaGraph<WholeStep>>);
#endif
