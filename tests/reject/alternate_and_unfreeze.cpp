// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Alternate and Unfreeze both decide which parameters a step trains. Remove one of them.
#include <frugal/model/alternate.hpp>
#include <frugal/model/freeze.hpp>
#include <frugal/trainer.hpp>

using namespace frugal;

using InTurns = Alternate<Turn<Where<"a.*">>, Turn<Where<"b.*">>>;

static_assert(Recipe<InTurns>::legal);
#ifdef FRUGAL_REJECT
bool const bad = frugal::detail::RecipeCheck<list<InTurns, Unfreeze<Where<"a.*">>>>::require();
#endif
