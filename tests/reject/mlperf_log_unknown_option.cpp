// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: MlperfLog<...>: unknown option. Options: a cadence such as Every<100> or Every<1, Epoch>.
#include <frugal/report/mlperf_log.hpp>

using namespace frugal;

auto good = MlperfLog<Every<1, Epoch>>{};
#ifdef FRUGAL_REJECT
auto bad = MlperfLog<Sample>{};
#endif
