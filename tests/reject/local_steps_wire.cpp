// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Wire<...> rounds gradients on their way, and with LocalSteps weights travel instead. Remove Wire, or use Replicate<Ring, Wire<BF16>>.
#include <frugal/cluster/replicate_local.hpp>

#include <type_traits>

using namespace frugal;
using frugal::detail::LocalStepsOptions;

static_assert(std::is_same_v<LocalStepsOptions<>::outer, Outer<Nesterov>>);
static_assert(std::is_same_v<LocalStepsOptions<Outer<SGD>>::outer, Outer<SGD>>);
#ifdef FRUGAL_REJECT
static_assert(
    std::is_same_v<LocalStepsOptions<Outer<Nesterov>, Wire<BF16>>::outer, Outer<Nesterov>>);
#endif
