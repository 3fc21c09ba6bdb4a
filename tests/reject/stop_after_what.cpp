// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: StopAfter<...> takes one wall time. Write StopAfter<Hours<4>>, or Minutes<N> or Seconds<N>.
#include <frugal/policy/start_on.hpp>
#include <frugal/policy/stop_after.hpp>

using namespace frugal;

auto good = StopAfter<Minutes<30>>{};
#ifdef FRUGAL_REJECT
StopAfter<Epochs<4>> bad;
#endif
