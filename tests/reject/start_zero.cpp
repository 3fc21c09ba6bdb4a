// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Epochs<0> is over before it begins. Write Epochs<1> or more.
#include <frugal/policy/start_on.hpp>

using namespace frugal;

auto good = StartOn<Cpu>{};
#ifdef FRUGAL_REJECT
StartOn<Cpu, Epochs<0>> bad;
#endif
