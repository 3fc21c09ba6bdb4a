// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Structured needs the share of channels that stays. Write Structured<Keep<0.75_r>, RoundTo<Auto>>.
#include <frugal/model/structured.hpp>

using namespace frugal;
using namespace frugal::literals;

Structured<Keep<0.75_r>> good;
#ifdef FRUGAL_REJECT
Structured<RoundTo<Auto>> bad;
#endif
