// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: ClipAdaptive needs a positive share. Write ClipAdaptive<0.01>, or leave it out.
#include <frugal/policy/clip.hpp>

using namespace frugal;

auto good = ClipAdaptive<0.02>{};
#ifdef FRUGAL_REJECT
auto bad = ClipAdaptive<0.0>{};
#endif
