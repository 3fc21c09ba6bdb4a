// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Shard divides the parameters that every step trains, and Alternate trains others in each turn. Remove Shard or Alternate.
#include <frugal/cluster.hpp>
#include <frugal/model/alternate.hpp>
#include <frugal/trainer.hpp>

using namespace frugal;

using InTurns = Alternate<Turn<Where<"a.*">>, Turn<Where<"b.*">>>;

static_assert(Recipe<InTurns, Replicate<Exact>>::legal);
static_assert(!Recipe<InTurns, Replicate<LocalSteps<8>>>::legal);
static_assert(!Recipe<InTurns, Replicate<Ring, Wire<PowerSGD<2>>>>::legal);
#ifdef FRUGAL_REJECT
bool const bad =
    frugal::detail::RecipeCheck<list<InTurns, Replicate<Exact, Shard<States>>>>::require();
#endif
