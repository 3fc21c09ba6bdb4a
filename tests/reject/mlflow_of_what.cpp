// SPDX-License-Identifier: Apache-2.0
// needs: torch notices
// expect: frugal: Mlflow<Cadence>: the option is a cadence, such as Every<100> or Every<1, Epoch>.
#include <frugal/report/mlflow.hpp>

using namespace frugal;

auto good = Mlflow<Every<100>>{};
#ifdef FRUGAL_REJECT
auto bad = Mlflow<int>{};
#endif
