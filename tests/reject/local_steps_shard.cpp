// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Shard<States> updates a part of the weights in each process, and with LocalSteps each process updates all of its own. Remove Shard, or use Replicate<Exact, Shard<States>>.
#include <frugal/cluster/replicate_local.hpp>

#include <type_traits>

using namespace frugal;
using frugal::detail::LocalStepsOptions;

static_assert(std::is_same_v<LocalStepsOptions<>::outer, Outer<Nesterov>>);
static_assert(std::is_same_v<LocalStepsOptions<Outer<SGD>>::outer, Outer<SGD>>);
#ifdef FRUGAL_REJECT
static_assert(
    std::is_same_v<LocalStepsOptions<Outer<Nesterov>, Shard<States>>::outer, Outer<Nesterov>>);
#endif
