// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: DryRun tries at least one batch. Write DryRun<2> or leave it out.
#include <frugal/policy/dry_run.hpp>

using namespace frugal;

auto good = DryRun<1>{};
#ifdef FRUGAL_REJECT
auto bad = DryRun<0>{};
#endif
