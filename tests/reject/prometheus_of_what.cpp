// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Prometheus<Cadence>: the option is a cadence, such as Every<100> or Every<1, Epoch>.
#include <frugal/report/prometheus.hpp>

using namespace frugal;

auto good = Prometheus<Every<100>>{};
#ifdef FRUGAL_REJECT
auto bad = Prometheus<int>{};
#endif
