// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Structured<...>: unknown option. Options: KeepShare<0.75>, RoundTo<Auto>, RoundTo<8>, Where<"pattern">.
#include <frugal/model/structured.hpp>

using namespace frugal;

Structured<KeepShare<0.75>, RoundTo<8>> good;
#ifdef FRUGAL_REJECT
Structured<KeepShare<0.75>, Keep<3>> bad;
#endif
