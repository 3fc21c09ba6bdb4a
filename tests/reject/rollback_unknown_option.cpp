// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Rollback<...>: unknown option. Options: a cadence in steps, micro-batches, samples or tokens, such as Every<100>.
#include <frugal/policy/rollback.hpp>

using namespace frugal;

auto good = Rollback<Every<10>>{};
#ifdef FRUGAL_REJECT
auto bad = Rollback<Sample>{};
#endif
