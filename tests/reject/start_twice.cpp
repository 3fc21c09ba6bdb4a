// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: StartOn<...>: the same option twice. Write StartOn<Cpu, Epochs<1>> or StartOn<Cpu, Steps<100>>.
#include <frugal/policy/start_on.hpp>

using namespace frugal;

auto good = StartOn<Steps<100>, Cpu>{};
#ifdef FRUGAL_REJECT
StartOn<Cpu, Steps<100>, Epochs<1>> bad;
#endif
