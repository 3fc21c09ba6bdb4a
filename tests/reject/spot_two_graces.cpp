// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Spot<...>: the same option twice. Keep one SigtermSave, one Grace<seconds> and one Notices<provider>.
#include <frugal/policy/spot.hpp>

using namespace frugal;

auto good = Spot<SigtermSave, Grace<30>>{};
#ifdef FRUGAL_REJECT
auto bad = Spot<SigtermSave, Grace<30>, Grace<120>>{};
#endif
