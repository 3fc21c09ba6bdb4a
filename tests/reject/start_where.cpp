// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: StartOn<...>: unknown option. Options: Cpu, and Epochs<N> or Steps<N>. Write StartOn<Cpu, Epochs<1>> or StartOn<Cpu, Steps<100>>.
#include <frugal/policy/start_on.hpp>

using namespace frugal;

auto good = StartOn<Cpu, Steps<100>>{};
#ifdef FRUGAL_REJECT
StartOn<Cpu, Every<100>> bad;
#endif
