// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: ClipValue needs a positive limit. Write ClipValue<1.0>, or leave it out.
#include <frugal/policy/clip.hpp>

using namespace frugal;

auto good = ClipValue<0.5>{};
#ifdef FRUGAL_REJECT
auto bad = ClipValue<0.0>{};
#endif
