// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Spot<...>: unknown option. Options: SigtermSave, Grace<seconds>, Notices<provider>.
#include <frugal/policy/spot.hpp>

using namespace frugal;

auto good = Spot<SigtermSave, Grace<30>>{};
#ifdef FRUGAL_REJECT
auto bad = Spot<SigtermSave, Every<500>>{};
#endif
