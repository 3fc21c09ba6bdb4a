// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Distil<...>: unknown option. Write Distil<Temperature<4>> for logits of classes, or Distil<SquaredError> for other outputs.
#include <frugal/model/distil.hpp>

using namespace frugal;

Distil<Temperature<4>> good;
#ifdef FRUGAL_REJECT
Distil<CrossEntropy> bad;
#endif
