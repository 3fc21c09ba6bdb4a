// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Distil<Temperature<T>> compares logits of classes, and this objective has none. Write Distil<SquaredError>.
#include <frugal/model/distil.hpp>

using namespace frugal;

auto good() { return Distil<SquaredError>{}.objective(MeanSquaredError{}); }
#ifdef FRUGAL_REJECT
auto bad() { return Distil<Temperature<4>>{}.objective(MeanSquaredError{}); }
#endif
