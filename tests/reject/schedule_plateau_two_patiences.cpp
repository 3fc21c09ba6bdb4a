// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Plateau<factor, ...>: the same option twice. Keep one Patience<validations> and one watched metric.
#include <frugal/policy/schedule.hpp>

using namespace frugal;

Schedule<Plateau<0.5, Patience<2>>> good;
#ifdef FRUGAL_REJECT
Schedule<Plateau<0.5, Patience<2>, Patience<4>>> bad;
#endif
