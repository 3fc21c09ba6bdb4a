// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: StartOn needs the device on which the run starts. Write StartOn<Cpu, Epochs<1>> or StartOn<Cpu, Steps<100>>.
#include <frugal/policy/start_on.hpp>

using namespace frugal;

auto good = StartOn<Cpu>{};
#ifdef FRUGAL_REJECT
StartOn<Steps<100>> bad;
#endif
