// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Precision<FP16> skips windows whose gradients are not finite, because its loss scale depends on them. Remove SkipNonFinite; with Precision<FromEnv<...>> it may stay.
#include <frugal/core.hpp>
#include <frugal/core/compose/recipe.hpp>
#include <frugal/policy/precision.hpp>
#include <frugal/policy/skip_non_finite.hpp>

using namespace frugal;

template <class... Ps>
constexpr bool skips = frugal::detail::RecipeCheck<typename Recipe<Ps...>::policies>::require();

static_assert(skips<SkipNonFinite, Precision<BF16>>);
static_assert(skips<SkipNonFinite, Precision<FromEnv<FP32, FP16>>>);
#ifdef FRUGAL_REJECT
static_assert(skips<SkipNonFinite, Precision<FP16>>);
#endif
