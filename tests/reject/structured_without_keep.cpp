// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Structured needs the share of channels that stays. Write Structured<KeepShare<0.75>, RoundTo<Auto>>.
#include <frugal/model/structured.hpp>

using namespace frugal;

Structured<KeepShare<0.75>> good;
#ifdef FRUGAL_REJECT
Structured<RoundTo<Auto>> bad;
#endif
