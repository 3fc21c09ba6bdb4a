// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: ClipNorm needs a positive norm. Write ClipNorm<1.0>, or leave it out.
#include <frugal/policy/clip.hpp>

using namespace frugal;

auto good = ClipNorm<0.5>{};
#ifdef FRUGAL_REJECT
auto bad = ClipNorm<0.0>{};
#endif
