// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: a run starts on the CPU, for some epochs or steps. Write StartOn<Cpu, Epochs<1>> or StartOn<Cpu, Steps<100>>.
#include <frugal/policy/start_on.hpp>

using namespace frugal;

auto good = StartOn<Cpu, Steps<100>>{};
#ifdef FRUGAL_REJECT
StartOn<Cpu, Every<100>> bad;
#endif
