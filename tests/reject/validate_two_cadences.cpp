// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Validate<...>: two cadences. Keep one, such as Every<1, Epoch>.
#include <frugal/policy/validate.hpp>

using namespace frugal;

auto good = Validate<Accuracy, Every<500>>{};
#ifdef FRUGAL_REJECT
auto bad = Validate<Every<500>, Every<1, Epoch>>{};
#endif
