// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: EarlyStop<...>: the same option twice. Keep one Patience<validations>, one GraceEpochs<epochs> and one watched metric.
#include <frugal/policy/early_stop.hpp>

using namespace frugal;

auto good = EarlyStop<Patience<3>>{};
#ifdef FRUGAL_REJECT
auto bad = EarlyStop<Patience<3>, Patience<5>>{};
#endif
