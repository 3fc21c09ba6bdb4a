// SPDX-License-Identifier: Apache-2.0
// expect: frugal: Plateau<factor>: the factor of the learning rate must be above 0 and below 1. Write Plateau<0.1>.
#include <frugal/core/compose/rational.hpp>
#include <frugal/policy/schedule/plateau.hpp>

using namespace frugal;

auto good = Plateau<0.5>{};
#ifdef FRUGAL_REJECT
auto bad = Plateau<1.0>{};
#endif
