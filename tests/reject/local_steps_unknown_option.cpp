// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Replicate<LocalSteps<H>, ...>: unknown option, or one twice. Options: Outer<Nesterov>, Outer<SGD>.
#include <frugal/cluster/replicate_local.hpp>

#include <type_traits>

using namespace frugal;
using frugal::detail::LocalStepsOptions;

static_assert(std::is_same_v<LocalStepsOptions<>::outer, Outer<Nesterov>>);
static_assert(std::is_same_v<LocalStepsOptions<Outer<SGD>>::outer, Outer<SGD>>);
#ifdef FRUGAL_REJECT
static_assert(
    std::is_same_v<LocalStepsOptions<Outer<Nesterov>, Outer<SGD>>::outer, Outer<Nesterov>>);
#endif
