// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Distill<Temperature<T>> compares logits of classes, and this objective has none. Write Distill<SquaredError>.
#include <frugal/model/distill.hpp>

using namespace frugal;

auto good() { return Distill<SquaredError>{}.objective(MeanSquaredError{}); }
#ifdef FRUGAL_REJECT
auto bad() { return Distill<Temperature<4>>{}.objective(MeanSquaredError{}); }
#endif
