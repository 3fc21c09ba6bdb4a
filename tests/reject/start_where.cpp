// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: a run starts on the CPU, for some epochs or steps. Write Start<Cpu, Epochs<1>> or Start<Cpu, Steps<100>>.
#include <frugal/policy/start.hpp>

using namespace frugal;

auto good = Start<Cpu, Steps<100>>{};
#ifdef FRUGAL_REJECT
Start<Cpu, Every<100>> bad;
#endif
