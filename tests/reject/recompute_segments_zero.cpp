// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Segments<0> leaves nothing to recompute. Write Segments<4> or Segments<Auto>, or leave Recompute out.
#include <frugal/policy/recompute.hpp>

using namespace frugal;

auto good = Segments<1>::number;
#ifdef FRUGAL_REJECT
auto bad = Segments<0>::number;
#endif
