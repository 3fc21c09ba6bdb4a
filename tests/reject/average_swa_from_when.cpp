// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Swa needs the moment from which it averages. Write Swa<From<10, Epoch>>, or Swa<From<5000>, Every<100>>.
#include <frugal/policy/average.hpp>

using namespace frugal;

auto good = Average<Swa<From<10, Epoch>, Every<1, Epoch>>>{};
#ifdef FRUGAL_REJECT
auto bad = Average<Swa<Every<1, Epoch>>>{};
#endif
