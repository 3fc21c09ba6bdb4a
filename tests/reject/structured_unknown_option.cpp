// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Structured<...>: unknown option. Options: Keep<0.75_r>, RoundTo<Auto>, RoundTo<8>, Where<"pattern">.
#include <frugal/model/structured.hpp>

using namespace frugal;
using namespace frugal::literals;

Structured<Keep<0.75_r>, RoundTo<8>> good;
#ifdef FRUGAL_REJECT
Structured<Keep<0.75_r>, Keep<3>> bad;
#endif
